"""Loading a module pauses the garbage collector, and leaves what a young process has loaded out of it."""

import gc
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import pytest
from depth import thin

from wpinq.progress.loading import Methods, _Heap, loading

NEW = "a module that nobody loaded"


class Node:
    def __init__(self):
        self.me = self


@pytest.fixture(autouse=True)
def usual(monkeypatch):
    monkeypatch.setattr(_Heap, "made", 0)
    monkeypatch.setattr(_Heap, "frozen", False)
    was = gc.isenabled()
    gc.enable()
    gc.unfreeze()  # what tests freeze when they have been collected
    yield
    gc.unfreeze()
    (gc.enable if was else gc.disable)()


def test_the_collector_waits_while_something_is_loaded_for_the_first_time():
    with loading(NEW):
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    with loading("sys"):
        assert gc.isenabled()


def test_what_became_garbage_meanwhile_is_collected_later():
    with loading(NEW):
        garbage = weakref.ref(Node())
    gc.collect(1)
    assert garbage() is not None, "it is in the oldest generation"
    gc.collect()
    assert garbage() is None


@thin(2)
@pytest.mark.parametrize(("loaded", "kept"), [([3.5], True), ([2.5], False), ([2, 0.1], False), ([2, 1.5], True)])
def test_a_young_process_is_frozen_for_good_and_a_used_one_is_not(loaded, kept):
    """What was loaded, in parts of what there was before: in all it is three times as much, or not."""
    gc.collect()
    others, held = sys.getallocatedblocks(), []
    for part in loaded:
        with loading(NEW):
            held.append([[] for _ in range(int(part * others))])
        assert _Heap.frozen is bool(gc.get_freeze_count())
    assert _Heap.frozen is kept


def test_what_is_loaded_by_a_young_process_later_is_frozen_too():
    held = []
    with loading(NEW):
        held.append([[] for _ in range(4 * sys.getallocatedblocks())])
    frozen = gc.get_freeze_count()
    with loading(NEW):
        held.append([[] for _ in range(1000)])
    assert frozen and gc.get_freeze_count() >= frozen + 1000


def test_other_threads_make_tuples_meanwhile():
    """Whoever looks at all objects of the process makes a tuple fail that another thread has not finished."""
    failed, ended, usual = [], threading.Event(), sys.getswitchinterval()
    sys.setswitchinterval(1e-4)

    def work():
        while not ended.is_set():
            try:
                tuple(number for number in range(3000))
            except SystemError as error:
                failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        with loading(NEW):
            time.sleep(0)
    ended.set()
    sys.setswitchinterval(usual)
    for thread in threads:
        thread.join()
    assert not failed


def test_it_goes_on_after_an_error():
    with pytest.raises(ImportError), loading(NEW):
        raise ImportError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off_and_what_is_frozen_stays_frozen():
    gc.disable()
    with loading(NEW):
        pass
    assert not gc.isenabled()
    gc.enable()
    gc.freeze()
    frozen = gc.get_freeze_count()
    with loading(NEW):
        pass
    assert gc.get_freeze_count() == pytest.approx(frozen, abs=50)
    assert gc.isenabled()
    assert NEW not in sys.modules


def test_a_method_that_is_loaded_late_is_found_as_any_other():
    """By an object, by the class, and by a class that has its own and calls the first one's, once."""
    module = Methods(SimpleNamespace(length=lambda self: [len(self)]))

    class First(list):
        size = module.length
        length = module.length

    class Second(First):
        def size(self):
            return ["once", *super().size()]

    assert Second("ab").size() == ["once", 2] == Second("ab").size()
    assert First("abc").size() == [3] == First.size("abc") == First("abc").length()
    assert First.size is First.length is vars(First)["size"]


def test_what_is_put_in_place_of_a_method_stays():
    class First(list):
        size = Methods(SimpleNamespace(size=lambda self: [len(self)])).size

    before = vars(First)["size"]
    First.size = lambda self: ["counted", before.__get__(self, First)()]
    assert First("abc").size() == ["counted", [3]] == First("abc").size()
