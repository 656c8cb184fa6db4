"""Explain each decision online: POST a row as JSON to /explain.

    EXPLAINER=explain.joblib uvicorn app:app --workers 4

``explain.joblib`` is what ``joblib.dump(explainer.compiled(), "explain.joblib")`` wrote, with your model.
"""

import json
import logging
import os
from contextlib import asynccontextmanager

import joblib
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from limes.exceptions import InputError
from limes.serve import Batcher, BusyError

log = logging.getLogger("decisions")


@asynccontextmanager
async def lifespan(app):
    explain = joblib.load(os.environ["EXPLAINER"])  # a pickle runs code: load your own only
    with Batcher(explain, max_rows=64, wait=0.003) as app.state.batcher:
        app.state.names = explain.feature_names
        yield


async def explain(request):
    try:
        row = await request.json()
        its = await request.app.state.batcher.explain(row, timeout=1.0)
    except (InputError, json.JSONDecodeError) as error:
        return JSONResponse({"error": str(error)}, 422)
    except BusyError as error:
        return JSONResponse({"error": str(error)}, 503, {"Retry-After": "1"})
    except TimeoutError:
        return JSONResponse({"error": "not explained within a second"}, 504)
    answer = {
        "prediction": its.predictions[0].tolist(),
        "base": its.base_values[0].tolist(),
        "contributions": dict(zip(request.app.state.names, its.values[0].tolist(), strict=True)),
        "warnings": its.warnings[0],
    }
    log.info(json.dumps({"case": request.headers.get("X-Case"), **answer}))
    return JSONResponse(answer)


app = Starlette(routes=[Route("/explain", explain, methods=["POST"])], lifespan=lifespan)
