"""The two shapes of log probabilities: a chat's list of objects, and the parallel lists of a legacy completion."""


def wanted_of(case):
    """The field that asks for them."""
    if case.endpoint == "responses":
        return bool(case.request.get("include") or case.request.get("top_logprobs"))
    return case.request.get("logprobs")


def check_logprobs(case, answer):
    wanted = wanted_of(case)
    for choice in answer.choices:
        if wanted is None or wanted is False:
            assert not choice.logprobs, f"logprobs that nobody asked for: {choice.logprobs}"
            continue
        assert choice.logprobs, "no logprobs"
        if case.endpoint in ("chat", "responses"):
            check_chat(choice, case.request.get("top_logprobs") or 0, "object" in case.expect)
            tokens = [entry["token"] for entry in choice.logprobs["content"]]
        else:
            check_legacy(choice, wanted, case.request.get("echo", False))
            tokens = choice.logprobs["tokens"]
        if "tokens" in case.expect:
            assert tokens == case.expect["tokens"], tokens
        check_number(case, answer, len(tokens))


def check_number(case, answer, number):
    """One entry for a token, where the usage tells how many there are and no stop has taken some away."""
    if answer.usage is None or len(answer.choices) > 1 or answer.choices[0].finish_reason != "length":
        return
    echoed = answer.usage["prompt_tokens"] if case.request.get("echo") else 0
    assert number == answer.usage["completion_tokens"] + echoed, f"{number} entries, usage {answer.usage}"


def check_chat(choice, number_of_top, is_guided):
    entries = choice.logprobs["content"]
    for entry in entries:
        assert entry["logprob"] <= 0, entry
        assert bytes(entry["bytes"]).decode("utf-8", "replace") == entry["token"], entry
        top = entry["top_logprobs"] or []
        enough = 1 <= len(top) <= number_of_top if is_guided else len(top) == number_of_top
        assert enough, f"{len(top)} alternatives instead of {number_of_top}"
        values = [item["logprob"] for item in top]
        assert values == sorted(values, reverse=True), values
        assert not top or entry["logprob"] <= values[0], entry
        assert len(top) != 1 or not is_guided or entry["logprob"] == 0, entry
        assert all(bytes(item["bytes"]).decode("utf-8", "replace") == item["token"] for item in top), top
    said = b"".join(bytes(entry["bytes"]) for entry in entries).decode("utf-8", "replace")
    is_whole = choice.finish_reason != "stop"  # a stop takes the end of the text away
    assert said == choice.text if is_whole else said.startswith(choice.text), (said, choice.text)


def check_legacy(choice, number_of_top, echoed):
    lists = choice.logprobs
    lengths = {len(lists[name]) for name in ("tokens", "token_logprobs", "text_offset", "top_logprobs")}
    assert len(lengths) == 1, f"four lists of one length: {lists}"
    offsets = lists["text_offset"]
    assert offsets == sorted(offsets) and offsets[0] == 0, offsets
    entries = zip(lists["tokens"], lists["token_logprobs"], lists["top_logprobs"])
    for place, (token, value, top) in enumerate(entries):
        if echoed and place == 0:  # nothing stands before the first token
            assert value is None and top is None, lists
            continue
        assert value <= 0 and top[token] == value, (token, value, top)
        assert max(1, number_of_top) <= len(top) <= number_of_top + 1, top
        assert value <= max(top.values()), (value, top)
    if choice.text.isascii():
        for token, offset in zip(lists["tokens"], offsets):
            there = choice.text.startswith(token, offset) or choice.finish_reason == "stop"
            assert there, (token, offset, choice.text)
