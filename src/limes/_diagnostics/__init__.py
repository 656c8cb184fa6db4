"""When not to trust an explanation: findings with a number, a sentence and an advice."""
