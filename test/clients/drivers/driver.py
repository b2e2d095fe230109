"""What every driver in Python does with its client; `driver.js` says how."""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, TimeoutError

MOST_TURNS = 6
CASE_BOUND_SECONDS = 600
TOOL_SCHEMA = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
    "additionalProperties": False,
}


def tool_names(count):
    return [f"tool_{at + 1}" for at in range(count)]


def list_messages(words, image, picture):
    """The content of a user's message: its words, and the picture if there is one."""
    return [{"type": "text", "text": words}] + ([] if image is None else [picture(image)])


def chat_tools(count):
    """The tools of a chat-completions request."""
    return [
        {"type": "function", "function": {"name": name, "description": f"Finds {name}.", "parameters": TOOL_SCHEMA}}
        for name in tool_names(count)
    ]


def chat_content(words, image):
    """The content of a user's message in chat-completions."""
    return list_messages(words, image, lambda url: {"type": "image_url", "image_url": {"url": url}})


def converse(open_conversation, given):
    seen = {"turns": [], "hasLeft": False, "error": None}
    try:
        conversation = open_conversation(given)
        conversation.say(given["prompt"], given["image"])
        follow_up = given["followUp"]
        while len(seen["turns"]) < MOST_TURNS:
            turn = {"text": "", "calls": []}
            seen["turns"].append(turn)
            pieces = conversation.turn()
            while True:
                try:
                    turn["text"] += next(pieces)
                except StopIteration as end:
                    calls = end.value
                    break
                leave_after = given["leaveAfterCharacters"]
                if leave_after is not None and len(turn["text"]) >= leave_after:
                    pieces.close()
                    seen["hasLeft"] = True
                    return seen
            turn["calls"] = [{"name": call["name"], "input": call["input"]} for call in calls]
            if calls:
                conversation.answer([{**call, "result": f"{call['name']} of {call['input']['place']}"} for call in calls])
            elif follow_up is not None:
                conversation.say(follow_up, None)
                follow_up = None
            else:
                return seen
        raise RuntimeError(f"the model still calls tools after {MOST_TURNS} turns")
    except Exception as error:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        seen["error"] = {
            "name": type(error).__name__,
            "status": status if isinstance(status, int) else None,
            "message": str(error).replace(given["baseUrl"], "")[:500],
        }
        return seen


def wait_until(deadline, future):
    """A case that hangs must not cost what is known of the others."""
    try:
        return future.result(max(0, deadline - time.monotonic()))
    except TimeoutError:
        message = f"it had not ended after {CASE_BOUND_SECONDS} s"
        return {"turns": [], "hasLeft": False, "error": {"name": "Driver", "status": None, "message": message}}


def drive(open_with):
    """Takes the cases from stdin, all at once, and prints what was seen in each."""
    given = json.load(sys.stdin)
    open_conversation = open_with(given["protocol"], given["package"])
    threads = ThreadPoolExecutor(len(given["cases"]))
    futures = [threads.submit(converse, open_conversation, case) for case in given["cases"]]
    deadline = time.monotonic() + CASE_BOUND_SECONDS
    json.dump([wait_until(deadline, future) for future in futures], sys.stdout)
    sys.stdout.flush()
    # A case that was given up would be waited for.
    os._exit(0)
