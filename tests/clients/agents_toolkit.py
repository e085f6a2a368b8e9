"""The OpenAI Agents SDK: an agent with tools, or with an answer of a type, through its models of Responses and of Chat
Completions."""
import asyncio

import agents
import openai

import demands
import weather
from weather import check, equal

MODELS = {"chat": agents.OpenAIChatCompletionsModel, "responses": agents.OpenAIResponsesModel}
ENOUGH_TOKENS = 400  # for a call with a text of the model's choice
LOOP = ["ToolCallItem", "ToolCallOutputItem", "MessageOutputItem"]


class Run:
    """Runs of an agent; a client of its own for each, for it belongs to an event loop."""

    def __init__(self, server, model, api):
        self.server, self.model, self.api = server, model, api
        self.tool = weather.Weather()

    def agent(self, **settings):
        client = openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0)
        return agents.Agent(
            name="Weather", instructions=weather.INSTRUCTIONS, tools=[agents.function_tool(self.tool.function())],
            model=MODELS[self.api](model=self.model, openai_client=client),
            model_settings=agents.ModelSettings(**{"temperature": 0, "max_tokens": weather.MAX_TOKENS,
                                                   "parallel_tool_calls": False, **settings}))

    async def whole(self, items):
        return await agents.Runner.run(self.agent(), items, max_turns=3)

    async def streamed(self, items):
        result = agents.Runner.run_streamed(self.agent(), items, max_turns=3)
        deltas = [event.data.delta async for event in result.stream_events()
                  if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"]
        equal("the deltas together", "".join(deltas), result.final_output)
        return result

    def __call__(self, items, is_streamed):
        return asyncio.run((self.streamed if is_streamed else self.whole)(items))


def answers(run, is_streamed):
    result = run("Say hi.", is_streamed)
    check("an answer", result.final_output)
    equal("calls", run.tool.cities, [])


def calls(run, is_streamed):
    items = [*weather.responses_history(), {"role": "user", "content": weather.QUESTION}]
    result = run(items, is_streamed)
    equal("calls", run.tool.cities, ["Madrid"])
    equal("items", [type(item).__name__ for item in result.new_items], LOOP)
    equal("answer", result.final_output, weather.ANSWER)
    again = run([*result.to_input_list(), {"role": "user", "content": weather.question_to("Rome")}], is_streamed)
    equal("calls after what it has sent itself", run.tool.cities, ["Madrid", "Rome"])
    equal("answer", again.final_output, weather.answer_to("Rome"))


def is_demanded(run, is_streamed):
    """The first answer must be a call, whatever is asked; then the choice is the model's again."""
    for choice in ("required", "weather"):
        result = asyncio.run(demand(run, choice, is_streamed))
        equal("first item", type(result.new_items[0]).__name__, "ToolCallItem")
    check(f"cities: {run.tool.cities}", len(run.tool.cities) >= 2)


async def demand(run, choice, is_streamed):
    agent = run.agent(tool_choice=choice, max_tokens=ENOUGH_TOKENS)
    if not is_streamed:
        return await agents.Runner.run(agent, "Say hi.", max_turns=3)
    result = agents.Runner.run_streamed(agent, "Say hi.", max_turns=3)
    async for _ in result.stream_events():
        pass
    return result


async def final_output(agent, question, is_streamed):
    if not is_streamed:
        return (await agents.Runner.run(agent, question, max_turns=1)).final_output
    result = agents.Runner.run_streamed(agent, question, max_turns=1)
    async for _ in result.stream_events():
        pass
    return result.final_output


def calls_none(run, is_streamed):
    agent = run.agent(tool_choice="none")
    check("an answer", asyncio.run(final_output(agent, weather.QUESTION, is_streamed)))
    equal("calls", run.tool.cities, [])


def is_of_a_type(run, is_streamed):
    agent = run.agent(max_tokens=demands.ENOUGH_TOKENS).clone(tools=[], output_type=demands.Person)
    demands.check_person(asyncio.run(final_output(agent, demands.ABOUT_PERSON, is_streamed)))


def checks(server, model):
    agents.set_tracing_disabled(True)
    for api in MODELS:
        for is_streamed in (False, True):
            for ask in (answers, calls, is_demanded, calls_none, is_of_a_type):
                name = f"{api} {'streamed' if is_streamed else 'whole'} {ask.__name__}"
                yield name, lambda ask=ask, api=api, s=is_streamed: ask(Run(server, model, api), s)
