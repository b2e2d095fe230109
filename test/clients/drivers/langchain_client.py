"""LangChain's client of OpenAI."""

from driver import chat_content, chat_tools, drive
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI


def open_with(protocol, _):
    class Conversation:
        def __init__(self, given):
            self.messages = []
            chat = ChatOpenAI(
                model=given["model"],
                api_key=given["key"],
                base_url=f"{given['baseUrl']}/v1",
                use_responses_api=protocol == "responses",
            )
            tools = chat_tools(given["tools"])
            self.model = chat.bind_tools(tools) if tools else chat

        def say(self, words, image):
            self.messages.append(HumanMessage(content=chat_content(words, image)))

        def answer(self, calls):
            self.messages.extend(ToolMessage(content=call["result"], tool_call_id=call["id"]) for call in calls)

        def turn(self):
            whole = None
            stream = self.model.stream(self.messages)
            try:
                for chunk in stream:
                    whole = chunk if whole is None else whole + chunk
                    yield chunk.text if isinstance(chunk.text, str) else chunk.text()
            finally:
                stream.close()
            self.messages.append(whole)
            return [{"id": call["id"], "name": call["name"], "input": call["args"]} for call in whole.tool_calls]

    return Conversation


drive(open_with)
