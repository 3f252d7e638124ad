import pytest

from toolplan.models import Retry


def wait(retry: Retry, number: int, *, waited=0.0, asked=None, draw=1.0):
    return retry.wait_seconds(number, waited_seconds=waited, asked_seconds=asked, draw=draw)


def test_ceilings_double_up_to_the_highest():
    retry = Retry(max_retries=6, base_seconds=0.5, ceiling_seconds=4.0)
    assert [wait(retry, number) for number in range(1, 7)] == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_jitter_is_full():
    assert wait(Retry(), 2, draw=0.0) == 0.0
    assert wait(Retry(), 2, draw=0.25) == 0.25


def test_no_more_retries_than_allowed():
    assert wait(Retry(max_retries=2), 2) is not None
    assert wait(Retry(max_retries=2), 3) is None
    assert wait(Retry(0), 1) is None


@pytest.mark.parametrize("draw", [0.0, 0.5, 1.0])
def test_what_the_provider_asks_for_is_never_undercut(draw):
    assert wait(Retry(), 1, asked=7.0, draw=draw) == 7.0 + 0.5 * draw


def test_a_wait_that_does_not_fit_is_not_begun():
    retry = Retry(total_seconds=10.0)
    assert wait(retry, 1, asked=11.0) is None
    assert wait(retry, 2, asked=5.0, waited=6.0) is None
    assert wait(retry, 2, asked=5.0, waited=4.0, draw=0.0) == 5.0
