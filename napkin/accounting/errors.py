"""What accounting refuses, by the setting that asked for it: questions name the option."""

from napkin.errors import NapkinError


class Unmeasured(NapkinError):
    """What was never measured of a model's layers, or cannot be divided as it is to be;
    `setting` is what asked for it."""

    setting = "model"


def unmeasured(setting: str, problem: str) -> Unmeasured:
    error = Unmeasured(problem)
    error.setting = setting
    return error
