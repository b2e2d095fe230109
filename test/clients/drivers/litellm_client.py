"""LiteLLM as a client, with the base URL of each provider."""

import json
import os

# It would ask the internet for its prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
from driver import chat_content, chat_tools, drive

litellm.suppress_debug_info = True
PROVIDERS = {
    "chat-completions": ("openai", "/v1"),
    "messages": ("anthropic", ""),
    "generate-content": ("gemini", "/v1beta"),
}


def open_with(protocol, _):
    provider, path = PROVIDERS[protocol]

    class Conversation:
        def __init__(self, given):
            self.messages = []
            self.request = {
                "model": f"{provider}/{given['model']}",
                "api_base": given["baseUrl"] + path,
                "api_key": given["key"],
                "messages": self.messages,
                "stream": True,
                "num_retries": 2,
            }
            if given["tools"] > 0:
                self.request["tools"] = chat_tools(given["tools"])

        def say(self, words, image):
            self.messages.append({"role": "user", "content": chat_content(words, image)})

        def answer(self, calls):
            for call in calls:
                self.messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "name": call["name"], "content": call["result"]}
                )

        def turn(self):
            chunks = []
            stream = litellm.completion(**self.request)
            try:
                for chunk in stream:
                    chunks.append(chunk)
                    yield (chunk.choices[0].delta.content if chunk.choices else None) or ""
            finally:
                # Letting go of it is how its users hang up.
                inner = getattr(stream, "completion_stream", None)
                for name in ("close", "response"):
                    found = getattr(inner, name, None)
                    close = found if name == "close" else getattr(found, "close", None)
                    if callable(close):
                        close()
            message = litellm.stream_chunk_builder(chunks).choices[0].message
            self.messages.append(message.model_dump(exclude_none=True))
            return [
                {"id": call.id, "name": call.function.name, "input": json.loads(call.function.arguments)}
                for call in message.tool_calls or []
            ]

    return Conversation


drive(open_with)
