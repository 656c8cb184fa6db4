"""Networks of transformers with few random weights."""

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "initializer_range": 0.5,
}
# networks add up in single precision, and padding changes the order
SINGLE = 2e-5
