"""Reads streams by the vendors' SDKs. Takes JSON cases as its argument; prints what each call read, or its error."""

import json
import sys

import anthropic
import openai
from google import genai
from google.genai import types

given = json.loads(sys.argv[1])
BASE, KEY = given["baseUrl"], given["key"]
TRACE, REPLAYED = "x-gateway-trace", "idempotency-replayed"

chat = openai.OpenAI(base_url=f"{BASE}/v1", api_key=KEY, max_retries=0)
claude = anthropic.Anthropic(base_url=BASE, api_key=KEY, max_retries=0)
google = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=BASE, api_version="v1beta"))


def by_chat_completions(model, headers):
    raw = chat.chat.completions.with_raw_response.create(
        model=model, messages=[{"role": "user", "content": "hi"}], stream=True, extra_headers=headers
    )
    yield raw.headers
    for chunk in raw.parse():
        for choice in chunk.choices:
            yield choice.delta.content or ""


def by_responses(model, headers):
    raw = chat.responses.with_raw_response.create(
        model=model, input=[{"role": "user", "content": "hi"}], stream=True, extra_headers=headers
    )
    yield raw.headers
    for event in raw.parse():
        if event.type == "response.output_text.delta":
            yield event.delta


def by_messages(model, headers):
    raw = claude.messages.with_raw_response.create(
        model=model, max_tokens=64, messages=[{"role": "user", "content": "hi"}], stream=True, extra_headers=headers
    )
    yield raw.headers
    for event in raw.parse():
        if event.type == "content_block_delta":
            yield event.delta.text


def by_generate_content(model, headers):
    config = types.GenerateContentConfig(http_options=types.HttpOptions(headers=headers))
    is_first = True
    for chunk in google.models.generate_content_stream(model=model, contents="hi", config=config):
        if is_first:
            yield chunk.sdk_http_response.headers
            is_first = False
        yield chunk.text or ""


WAYS = {
    "chat-completions": by_chat_completions,
    "responses": by_responses,
    "messages": by_messages,
    "generate-content": by_generate_content,
}


def read(case):
    found = {"text": "", "trace": None, "replayed": None, "error": None}
    try:
        headers = {"Idempotency-Key": case["intent"]} if case.get("intent") else {}
        for piece in WAYS[case["client"]](case["model"], headers):
            if isinstance(piece, str):
                found["text"] += piece
            else:
                names = {name.lower(): value for name, value in dict(piece).items()}
                found["trace"], found["replayed"] = names.get(TRACE), names.get(REPLAYED)
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


print(json.dumps([read(case) for case in given["cases"]]))
