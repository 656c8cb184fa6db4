"""
Which documents made the answer?
================================

A language model answers from documents in its prompt. limes asks it again without some of them, and says what each document adds to the answer. It needs
``pip install '.[pandas]'`` from a checkout, and a function that sends prompts to your model.

.. index:: RAG, retrieval, citations, LLM, attribution, documents, prompt
"""

# %%
# The answer
# ----------
#
# Replace ``documents`` and the question by yours, and ``write`` by a function that sends each prompt of a list to your model and returns the texts. Here a few
# lines stand in for the model, so that this page needs none.
import limes

documents = {
    "harbour": "The harbour was built in 1850. It freezes in hard winters.",
    "lighthouse": "The keeper of the lighthouse is called Tomas. He feeds the gulls.",
    "mill": "Ada owns the old mill. The mill has not turned for years.",
}


def write(prompts):
    """Answer each prompt: a stand-in for a language model."""
    return ["The keeper is Tomas." if "Tomas" in text else "I do not know." for text in prompts]


def similarity(answer, text):
    """Share of words that two texts have in common."""
    words, others = set(answer.lower().split()), set(text.lower().split())
    return len(words & others) / len(words | others)


prompt = limes.Prompt("Sources:\n", limes.sources(documents), "\nQuestion: Who keeps the lighthouse?")
explainer = limes.PromptExplainer(write, similarity=similarity, max_calls=64)
print(explainer.cost(prompt))
explanation = explainer(prompt, progress=False)
print(explanation)

# %%
# How to read it
# --------------
#
# The answer with all sources is compared with the answers without some of them: the prediction is how alike they are, 1 with all sources, and the base the same
# with none. A document's contribution is what it adds, on average over the orders in which documents can be added; all of them add up to the
# difference. A document at 0 could have been left out.
#
# Sentences instead of documents
# ------------------------------
by_sentence = limes.Prompt(
    "Sources:\n", limes.sources(documents, by="sentence"), "\nQuestion: Who keeps the lighthouse?"
)
sentences = explainer(by_sentence, progress=False)
sentences.plot.text()

# %%
# Your model
# ----------
#
# A hosted model, by its client, or a local network, whose log-probability of the answer is then explained, which says more than how alike texts are:
#
# .. code-block:: python
#
#     def write(prompts):
#         ask = lambda text: client.chat.completions.create(
#             model="...", temperature=0, messages=[{"role": "user", "content": text}]
#         )
#         return [ask(text).choices[0].message.content for text in prompts]
#
#     explainer = limes.PromptExplainer((network, tokenizer), max_calls=64)  # of transformers
#
# If it goes wrong
# ----------------
#
# - *All contributions are about 0*: the model knows the answer without the documents. The base says so: it is near the prediction. The question may
#   give the answer away, too.
# - *Errors are large*: many sources and few calls. Raise ``max_calls=``: all 2ⁿ sets of n sources are exact, as of ten documents with ``max_calls=1100``. Or explain
#   documents before sentences.
# - *The numbers differ from call to call*: the service samples its answers. Errors contain that spread, where up to 16 repeated prompts show it;
#   ``temperature=0`` ends it.
# - *The answer is one that you have*: ``explainer(prompt, "The keeper is Tomas.")`` explains it, with no answer written first.
# - *Calls fail now and then*: ``retry=lambda error, attempt: 2.0**attempt if attempt < 5 else None``.
#
# Next
# ----
#
# :doc:`/guides/plot_11_prompts` explains a network of 135 million parameters on a laptop, other answers, and a choice among answers.
# ``limes explain-prompt`` does the same from files.
