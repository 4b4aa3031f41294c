"""What has bench measured on this machine?"""

from functools import partial

from napkin import units
from napkin.questions.answer import Answer, Report, Table, Words
from napkin.specs import measured
from napkin.specs.folders import measured_folder
from napkin.specs.measured import Measured

# Of csv: a figure on file.
COLUMNS = (
    *("device", "dtype", "device_name", "type", "flops_per_second", "shape", "date"),
    *("torch", "file"),
)


def figures() -> Report:
    """Every figure on file, by device and precision; a broken file is a warning."""
    found, broken = measured.everything()
    rows = [
        (each.device, each.dtype, units.tera(each.rate), each.shape, each.date[:10])
        for each in found
    ]
    columns = ("device", "precision", "TFLOP/s", "shape", "date")
    nothing = "nothing can be read" if broken else "nothing is on file"
    caption = measured_folder() if rows else f"{nothing} in {measured_folder()}"
    table = Table(columns, rows, frozenset(("TFLOP/s",)), caption)
    return Report("bench", [_answer(each) for each in found], table, broken)


def _answer(figure: Measured) -> Answer:
    inputs = {"device": figure.device, "dtype": figure.dtype}
    result = {
        "device_name": figure.device,
        "type": figure.type,
        "dtype": figure.dtype,
        "flops_per_second": figure.rate,
        "shape": figure.shape,
        "date": figure.date,
        "torch": figure.torch,
        "file": str(figure.path),
    }
    words = partial(Words, figure.device, figure.dtype)
    return Answer("bench", inputs, result, words, columns=COLUMNS)
