"""One Prefect task a stage, the data sets, and the store that remembers what they computed."""


class InputError(ValueError):
    """Bad input from the user: one line that names the value received and what is accepted."""
