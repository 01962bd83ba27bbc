"""Where the threads of an application meet: it tells how many of them are free."""

import threading
import time

#: `hold` waits for so many others, but no longer than that.
HOLD_S = 1.0

_changed = threading.Condition()
_inside = 0


def hold(most):
    """As many threads as are free meet here; how many did."""
    global _inside
    with _changed:
        _inside += 1
        _changed.notify_all()
        _changed.wait_for(lambda: _inside >= most, HOLD_S)
        seen = _inside
    # The last one to come is seen by all before the first one goes.
    time.sleep(0.05)
    with _changed:
        seen = max(seen, _inside)
    time.sleep(0.05)
    with _changed:
        _inside -= 1
    return b"%02d" % seen
