"""SIGTERM is Ctrl-C; the second signal ends the process even where Python is busy."""

import signal
import subprocess
import sys
import threading

import pytest

from pfbr.cli.interrupts import STOPPED, stoppable

BUSY = """
import hashlib, sys, time
from pfbr.cli.interrupts import stoppable
with stoppable():
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        print("once", flush=True)
        hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)  # minutes; like a compilation it lets threads run
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_an_interrupt_and_the_old_handlers_come_back(number):
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), stoppable():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_second_signal_ends_at_once():
    process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "once\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == STOPPED
    finally:
        process.kill()  # nothing is left behind where it went on


def test_a_thread_goes_without():
    reached = []

    def run():
        with stoppable():
            reached.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert reached == [True]
