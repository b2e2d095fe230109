"""The vendors' own SDKs."""

import base64
import json

import anthropic
import openai
from driver import TOOL_SCHEMA, chat_content, chat_tools, drive, list_messages, tool_names
from google import genai
from google.genai import types


class Chat:
    def __init__(self, given):
        self.client = openai.OpenAI(base_url=f"{given['baseUrl']}/v1", api_key=given["key"])
        self.request = {"model": given["model"], "messages": []}
        self.messages = self.request["messages"]
        if given["tools"] > 0:
            self.request["tools"] = chat_tools(given["tools"])

    def say(self, words, image):
        self.messages.append({"role": "user", "content": chat_content(words, image)})

    def answer(self, calls):
        for call in calls:
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": call["result"]})

    def turn(self):
        with self.client.chat.completions.stream(**self.request) as stream:
            for event in stream:
                if event.type == "content.delta":
                    yield event.delta
            message = stream.get_final_completion().choices[0].message
        self.messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}, warnings=False))
        return [
            {"id": call.id, "name": call.function.name, "input": json.loads(call.function.arguments)}
            for call in message.tool_calls or []
        ]


class Responses:
    def __init__(self, given):
        self.client = openai.OpenAI(base_url=f"{given['baseUrl']}/v1", api_key=given["key"])
        self.request = {"model": given["model"], "input": [], "store": False}
        self.input = self.request["input"]
        if given["tools"] > 0:
            self.request["tools"] = [
                {"type": "function", "name": name, "description": f"Finds {name}.", "parameters": TOOL_SCHEMA, "strict": True}
                for name in tool_names(given["tools"])
            ]

    def say(self, words, image):
        content = [{"type": "input_text", "text": words}]
        if image is not None:
            content.append({"type": "input_image", "image_url": image, "detail": "auto"})
        self.input.append({"role": "user", "content": content})

    def answer(self, calls):
        for call in calls:
            self.input.append({"type": "function_call_output", "call_id": call["id"], "output": call["result"]})

    def turn(self):
        with self.client.responses.stream(**self.request) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    yield event.delta
            output = stream.get_final_response().output
        self.input.extend(item.model_dump(exclude_none=True, exclude={"parsed_arguments"}, warnings=False) for item in output)
        return [
            {"id": item.call_id, "name": item.name, "input": json.loads(item.arguments)}
            for item in output
            if item.type == "function_call"
        ]


class Messages:
    def __init__(self, given):
        self.client = anthropic.Anthropic(base_url=given["baseUrl"], api_key=given["key"])
        self.request = {"model": given["model"], "max_tokens": 4096, "messages": []}
        self.messages = self.request["messages"]
        if given["tools"] > 0:
            self.request["tools"] = [
                {"name": name, "description": f"Finds {name}.", "input_schema": TOOL_SCHEMA}
                for name in tool_names(given["tools"])
            ]

    def say(self, words, image):
        picture = lambda url: {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": url.split(",")[1]},
        }
        self.messages.append({"role": "user", "content": list_messages(words, image, picture)})

    def answer(self, calls):
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": call["result"]} for call in calls]
        self.messages.append({"role": "user", "content": results})

    def turn(self):
        with self.client.messages.stream(**self.request) as stream:
            yield from stream.text_stream
            message = stream.get_final_message()
        self.messages.append({"role": "assistant", "content": message.content})
        return [
            {"id": block.id, "name": block.name, "input": block.input}
            for block in message.content
            if block.type == "tool_use"
        ]


class GenerateContent:
    def __init__(self, given):
        options = types.HttpOptions(base_url=given["baseUrl"])
        self.client = genai.Client(api_key=given["key"], http_options=options)
        self.model = given["model"]
        self.contents = []
        declarations = [
            {"name": name, "description": f"Finds {name}.", "parameters_json_schema": TOOL_SCHEMA}
            for name in tool_names(given["tools"])
        ]
        self.config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=declarations)] if declarations else None
        )

    def say(self, words, image):
        parts = [types.Part.from_text(text=words)]
        if image is not None:
            parts.append(types.Part.from_bytes(data=base64.b64decode(image.split(",")[1]), mime_type="image/png"))
        self.contents.append(types.Content(role="user", parts=parts))

    def answer(self, calls):
        parts = [
            types.Part.from_function_response(name=call["name"], response={"output": call["result"]}) for call in calls
        ]
        self.contents.append(types.Content(role="user", parts=parts))

    def turn(self):
        parts = []
        stream = self.client.models.generate_content_stream(
            model=self.model, contents=self.contents, config=self.config
        )
        try:
            for chunk in stream:
                for candidate in chunk.candidates or []:
                    parts.extend((candidate.content and candidate.content.parts) or [])
                yield chunk.text or ""
        finally:
            stream.close()
        self.contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        return [{"id": call.id, "name": call.name, "input": call.args} for call in calls]


WAYS = {
    "chat-completions": Chat,
    "responses": Responses,
    "messages": Messages,
    "generate-content": GenerateContent,
}

drive(lambda protocol, _: WAYS[protocol])
