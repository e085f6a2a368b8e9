"""Beginnings and ends: two models at once, Ctrl-C, other threads, forks, and interpreters that end in the middle."""
from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

import kvasir
from conftest import GEMMA, LLAMA, TIME_LIMIT_S, run_script, wait_until_idle

LOAD = "import sys, threading, time, kvasir\nllm = kvasir.LLM(sys.argv[1], threads=2)\n"
LONG = "dict(temperature=0, ignore_eos=True)"


def test_two_models_live_in_one_process() -> None:
    with kvasir.LLM(LLAMA, threads=1) as one, kvasir.LLM(GEMMA, threads=1) as two:
        expected = [llm.generate("the", temperature=0, max_tokens=8).token_ids for llm in (one, two)]
        found: dict[int, list[int]] = {}

        def answer(index: int, llm: kvasir.LLM) -> None:
            found[index] = llm.generate("the", temperature=0, max_tokens=8).token_ids

        threads = [threading.Thread(target=answer, args=numbered) for numbered in enumerate((one, two))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found[0], found[1]] == expected


def test_a_closed_model_says_so() -> None:
    llm = kvasir.LLM(LLAMA, threads=1)
    stream = llm.stream("the quick", ignore_eos=True)
    llm.close()
    llm.close()
    assert "closed" in repr(llm)
    with pytest.raises(kvasir.UsageError, match="LLM: is closed"):
        llm.generate("the quick")
    with pytest.raises(kvasir.UsageError, match="LLM: is closed"):
        llm.stats()
    assert list(stream)[-1].finish_reason == "cancelled"


def test_a_model_that_nobody_holds_is_gone() -> None:
    for _ in range(3):
        assert len(kvasir.LLM(LLAMA, threads=1).generate("the", max_tokens=2, ignore_eos=True).token_ids) == 2
    assert len(list(kvasir.LLM(LLAMA, threads=1).stream("the", max_tokens=5, ignore_eos=True))) == 5


def test_closing_ends_what_another_thread_waits_for() -> None:
    llm = kvasir.LLM(LLAMA, threads=1)
    answers: list[kvasir.Answer] = []
    thread = threading.Thread(target=lambda: answers.append(llm.generate("the quick", ignore_eos=True)))
    thread.start()
    while llm.stats()["num_running"] == 0 and thread.is_alive():
        time.sleep(0.001)
    llm.close()
    thread.join()
    assert answers[0].finish_reason in ("cancelled", "length")


def test_ctrl_c_ends_the_requests_and_is_a_keyboard_interrupt(llm: kvasir.LLM) -> None:
    cancelled = wait_until_idle(llm)["num_requests_cancelled"]
    interrupt = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        while True:
            llm.generate(["the quick"] * 4, ignore_eos=True)
    interrupt.join()
    stats = wait_until_idle(llm)
    assert stats["num_requests_cancelled"] >= cancelled
    assert llm.generate("the quick", max_tokens=1).usage.completion_tokens == 1


def test_ctrl_c_from_outside_frees_a_long_generation() -> None:
    script = LOAD + (
        "stream = llm.stream('the quick', ignore_eos=True)\n"
        "try:\n"
        "    print('ready', flush=True)\n"
        "    while True: llm.generate(['the quick'] * 16, ignore_eos=True)\n"
        "except KeyboardInterrupt:\n"
        "    stream.close()\n"
        "end = time.monotonic() + 60\n"
        "while llm.stats()['num_running'] > 0 and time.monotonic() < end: time.sleep(0.01)\n"
        "print(llm.stats()['num_running'], llm.stats()['num_requests_cancelled'] > 0, flush=True)\n")
    process = subprocess.Popen([sys.executable, "-c", script, LLAMA], stdout=subprocess.PIPE, text=True,
                               env={"PYTHONPATH": ":".join(sys.path)})
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=TIME_LIMIT_S)[0] == "0 True\n"
    assert process.returncode == 0


@pytest.mark.parametrize("ending", [
    pytest.param("", id="live model"),
    pytest.param(f"stream = llm.stream('the quick', **{LONG})\nnext(stream)\n", id="live stream"),
    pytest.param(f"other = kvasir.LLM(sys.argv[1], threads=1)\ns = other.stream('the', **{LONG})\n", id="two models"),
    pytest.param(f"def work():\n    while True:\n        try: llm.generate(['the quick'] * 3, **{LONG})\n"
                 "        except kvasir.Error: pass\n"
                 "for _ in range(4): threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.2)\n",
                 id="daemon threads"),
    pytest.param("def work():\n    while True:\n        try: kvasir.LLM(sys.argv[1], threads=1)\n"
                 "        except kvasir.Error: pass\n"
                 "threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.1)\n",
                 id="loading in a daemon thread"),
    pytest.param("import asyncio\nasync def read():\n"
                 f"    stream = llm.stream('the quick', **{LONG})\n    globals()['kept'] = stream\n"
                 "    await stream.__anext__()\nasyncio.run(read())\n", id="stream of a loop that is over"),
    pytest.param("a = [llm]\na.append(a)\ndel llm\n", id="model in a cycle"),
    pytest.param("sys.modules['keep'] = llm\n", id="model in sys.modules"),
])
def test_an_interpreter_ends_whatever_is_left(ending: str) -> None:
    done = run_script(LOAD + ending + "print('the end', flush=True)\n", LLAMA)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the end\n", "")


def test_an_exception_ends_an_interpreter_with_its_own_code() -> None:
    done = run_script(LOAD + f"s = llm.stream('the', **{LONG})\nraise SystemExit(7)\n", LLAMA)
    assert (done.returncode, done.stderr) == (7, "")


def test_a_fork_is_told_to_load_its_own() -> None:
    done = run_script(LOAD + (
        "import asyncio, os\n"
        "stream = llm.stream('the quick', temperature=0, ignore_eos=True)\n"
        "other = llm.stream('the quick', temperature=0, ignore_eos=True)\n"
        "async def read(): return [piece async for piece in other]\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    for call in (lambda: llm.generate('the'), lambda: list(stream), lambda: asyncio.run(read())):\n"
        "        try: call()\n"
        "        except kvasir.UsageError as error: print(error, flush=True)\n"
        "    llm.close()\n"
        "    sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(list(stream)) > 5,\n"
        "      len(asyncio.run(read())) > 5)\n"), LLAMA)
    said = "LLM: was loaded before this process was forked; a process that computes loads its own\n"
    assert (done.stdout, done.returncode) == (said * 3 + "3 True True\n", 0), done.stderr
