"""One run, any unknown: whichever is left out is found, and what it is found from gives it back."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import napkin as api
from napkin import NapkinError
from tests.running import answer, data

DAY = 86_400
PARAMS = st.integers(10**6, 10**13)
TOKENS = st.integers(10**6, 10**15)
GPUS = st.integers(1, 10**6)
SHARE = st.floats(0.01, 1)
PRICE = st.floats(0.01, 100)


def asked(**options: Any) -> dict[str, Any]:
    result: dict[str, Any] = api.train_time(**options).result
    return result


def of_run(run: dict[str, Any]) -> dict[str, Any]:
    """What a run's result says, as the options that would say it."""
    return {
        "params": run["params"],
        "tokens": run["tokens"],
        "gpus": run["gpus"],
        "mfu": run["mfu"],
        "time": f"{run['seconds']!r}s",
    }


@settings(deadline=None)
@given(PARAMS, TOKENS, GPUS, SHARE)
@example(70 * 10**9, 15 * 10**12, 1024, 0.5)
def test_each_of_a_run_s_inputs_is_found_from_the_others(
    params: int, tokens: int, gpus: int, mfu: float
) -> None:
    run = asked(params=params, tokens=tokens, gpus=gpus, mfu=mfu)
    said = of_run(run)
    for left_out in said:
        found = asked(**{name: value for name, value in said.items() if name != left_out})
        if left_out == "time":
            assert found["seconds"] == run["seconds"]
        elif left_out == "gpus":
            assert found["gpus"] == max(gpus, run["min_gpus_for_states"])
        else:
            assert found[left_out] == pytest.approx(run[left_out], rel=1e-9)


@settings(deadline=None)
@given(PARAMS, TOKENS, GPUS, SHARE, PRICE, st.sampled_from(["0%", "10%", "33.3%"]))
def test_every_way_to_say_a_part_of_it_gives_it_back(
    params: int, tokens: int, gpus: int, mfu: float, price: float, lost: str
) -> None:
    more = {"lost_time": lost}
    run = asked(
        params=params, tokens=tokens, gpus=gpus, mfu=mfu, price=price, power="500 W", **more
    )
    size, work, rate = {"params": params}, {"params": params, "tokens": tokens}, {"mfu": mfu}
    hours = {"gpu_hours": run["gpu_hours"]}
    cost = {"price": price, "budget": run["cost"]}
    energy = {"power": "500 W", "energy": f"{run['energy_kwh']!r}kWh"}
    one_gpu = {"tokens_per_second_per_gpu": run["tokens_per_second_per_gpu"]}
    for said, key in (
        ({"flops": run["flops"], "gpus": gpus, **rate}, "seconds"),
        ({"flops": run["flops"], **size, "gpus": gpus, **rate}, "tokens"),
        ({**work, **hours}, "mfu"),
        ({**size, **hours, **rate}, "tokens"),
        ({"tokens": tokens, **hours, **rate}, "params"),
        ({**work, **hours, "gpus": gpus}, "seconds"),
        ({**work, **cost}, "mfu"),
        ({**size, **cost, **rate}, "tokens"),
        ({**work, **energy}, "mfu"),
        ({"tokens": tokens, **energy, **rate}, "params"),
        ({**work, "gpus": gpus, **one_gpu}, "seconds"),
        ({**work, "gpus": gpus, **one_gpu}, "mfu"),
        ({**work, "gpus": gpus, "tokens_per_second": run["tokens_per_second"]}, "seconds"),
    ):
        assert asked(**said, **more)[key] == pytest.approx(run[key], rel=1e-9), said
    found = asked(**work, gpus=gpus, **rate, budget=run["cost"], **more)
    assert found["price"] == pytest.approx(price, rel=1e-9)
    found = asked(**work, gpus=gpus, **rate, energy=energy["energy"], **more)
    assert found["power_watts"] == pytest.approx(500, rel=1e-9)


@settings(deadline=None)
@given(GPUS, st.floats(1, 1000), SHARE, st.floats(1, 1000))
def test_the_compute_optimal_model_and_tokens_take_the_time_that_there_is(
    gpus: int, days: float, mfu: float, each: float
) -> None:
    within, optimal = f"{days!r}d", {"tokens_per_param": each}
    run = asked(gpus=gpus, within=within, mfu=mfu, **optimal)
    assert run["tokens"] == pytest.approx(each * run["params"], rel=1e-9)
    again = asked(params=run["params"], tokens=run["tokens"], gpus=gpus, mfu=mfu)
    assert again["seconds"] == pytest.approx(days * DAY, rel=1e-9)
    for size in ({"params": run["params"]}, {"tokens": run["tokens"]}):
        found = asked(**size, **optimal, gpus=gpus, mfu=mfu)
        assert found["seconds"] == pytest.approx(days * DAY, rel=1e-9)


@settings(deadline=None)
@given(PARAMS, TOKENS, st.floats(0.1, 1e4), SHARE, st.integers(1, 64))
def test_the_gpus_are_the_fewest_whole_nodes_that_make_it_and_hold_the_state(
    params: int, tokens: int, days: float, mfu: float, node: int
) -> None:
    try:
        run = asked(params=params, tokens=tokens, within=f"{days!r}d", mfu=mfu, node=node)
    except NapkinError as error:
        assert "more than there are" in str(error)
        return
    n = run["gpus"]
    assert n % node == 0
    assert n >= run["min_gpus_for_states"]
    assert run["seconds"] <= days * DAY * (1 + 1e-9)
    fewer = n - node
    if fewer >= max(1, run["min_gpus_for_states"]):
        less = asked(params=params, tokens=tokens, gpus=fewer, mfu=mfu, node=node)
        assert less["seconds"] > days * DAY


CLAIMS = data("published_claims.yaml")


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim["id"] for claim in CLAIMS])
def test_what_was_published_of_a_run_is_found(claim: dict[str, Any]) -> None:
    result = answer(claim["run"])["result"]
    for key, stated in claim["result"].items():
        assert result[key] == pytest.approx(float(stated), rel=float(claim["within"])), key
