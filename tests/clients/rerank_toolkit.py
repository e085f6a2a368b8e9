"""Reranking through Cohere's package, first and second API, and litellm's providers of Cohere, Jina and vLLM."""
import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import asks the network for prices

import cohere
import litellm

from weather import check, equal

MODEL = "all-minilm:22m"  # as toolkits_test.py serves it
QUERY = "Which animal purrs?"
DOCUMENTS = ["A bridge is made of steel.", "A cat purrs when it is content.", "Rain falls in autumn."]
BEST = 1


def is_ordered(scores):
    return all(first >= second for first, second in zip(scores, scores[1:]))


def of_cohere(client, **more):
    answer = client.rerank(model=MODEL, query=QUERY, documents=DOCUMENTS, **more)
    equal("best", answer.results[0].index, BEST)
    check("order", is_ordered([result.relevance_score for result in answer.results]))
    check("an id", answer.id)
    return answer


def first_api(client):
    equal("all", len(of_cohere(client).results), len(DOCUMENTS))
    answer = of_cohere(client, top_n=2, return_documents=True)
    equal("the best two", len(answer.results), 2)
    equal("document", answer.results[0].document.text, DOCUMENTS[BEST])
    objects = [{"title": f"t{index}", "body": text} for index, text in enumerate(DOCUMENTS)]
    answer = client.rerank(model=MODEL, query=QUERY, documents=objects, rank_fields=["title", "body"], return_documents=True)
    equal("best of objects", answer.results[0].index, BEST)


def second_api(client):
    answer = of_cohere(client, top_n=1)
    equal("the best one", len(answer.results), 1)
    equal("api version", answer.meta.api_version.version, "2")


def of_litellm(server, provider, documents):
    answer = litellm.rerank(model=f"{provider}/{MODEL}", query=QUERY, documents=documents, top_n=2, return_documents=True,
                            api_base=server.url, api_key="none")
    equal("best", answer.results[0]["index"], BEST)
    equal("the best two", len(answer.results), 2)
    check("order", is_ordered([result["relevance_score"] for result in answer.results]))
    equal("document", answer.results[0]["document"]["text"], DOCUMENTS[BEST])


def checks(server, _):
    yield "cohere, first API", lambda: first_api(cohere.Client("none", base_url=server.url))
    yield "cohere, second API", lambda: second_api(cohere.ClientV2("none", base_url=server.url))
    for provider in ("cohere", "jina_ai", "hosted_vllm"):
        yield f"litellm {provider}", lambda provider=provider: of_litellm(server, provider, DOCUMENTS)
    objects = [{"text": text} for text in DOCUMENTS]
    yield "litellm jina_ai, objects", lambda: of_litellm(server, "jina_ai", objects)
