"""Log an explanation with a run of MLflow: the page, the numbers, and R² as a metric."""

import mlflow
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(20, random_state=0).fit(X, y)
explanation = limes.TabularExplainer(model, X)(X.iloc[[3, 7]])

with mlflow.start_run() as run:
    mlflow.log_text(explanation.to_html(), "explanations/page.html")
    mlflow.log_text(explanation.to_json(), "explanations/numbers.json")
    mlflow.log_metric("least R2 of surrogates", float(explanation.fidelity.min()))
    options = ("bins", "law", "bandwidth")
    mlflow.log_params({f"limes {name}": explanation.provenance[name] for name in options})
print(run.info.artifact_uri)
