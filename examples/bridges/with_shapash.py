"""Show coefficients in shapash, which takes contributions of any kind: here these are no Shapley values."""

import pandas as pd
from shapash import SmartExplainer
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = RandomForestRegressor(20, random_state=0).fit(X, y)
rows = X.iloc[:50]
explanation = limes.TabularExplainer(model, X)(rows)

names = list(explanation.feature_names)
contributions = pd.DataFrame(explanation.coefficients.values, index=rows.index, columns=names)
page = SmartExplainer(model=model, title_story="Coefficients of LIME's surrogate (limes)")
page.compile(x=rows, contributions=contributions)
reasons = page.to_pandas(max_contrib=3)
print(reasons.head())  # page.run_app() shows them in the browser
