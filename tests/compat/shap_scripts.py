"""Public scripts that use shap, rebuilt from memory of what they do: by kind of source, each with its calls.

A script has ``shap``, and tables of ``scikit-learn`` in place of what it downloads. It puts numbers into
``out``; ``truth``, if it sets it, is (function, background, rows, values): where shap misses its own
definition, the values are compared with an enumeration of all coalitions.
"""

SCRIPTS = {
    "readme: boosted trees, waterfall and beeswarm": """
X, y = diabetes()
model = xgboost.XGBRegressor(n_estimators=30, n_jobs=1).fit(X, y)
explainer = shap.Explainer(model)
shap_values = explainer(X)
shap.plots.waterfall(shap_values[0], show=False)
shap.plots.beeswarm(shap_values, show=False)
shap.plots.bar(shap_values, show=False)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "readme: one prediction as a force plot": """
X, y = diabetes()
model = xgboost.XGBRegressor(n_estimators=30, n_jobs=1).fit(X, y)
shap_values = shap.Explainer(model)(X[:30])
page = shap.plots.force(shap_values[0])
out["values"], out["page"] = shap_values.values, float("visualizer" in page.html() or bool(page.html()))
""",
    "readme: kernel explainer of a support vector machine": """
X_train, X_test, Y_train, Y_test = train_test_split(*iris(), test_size=0.2, random_state=0)
svm = SVC(kernel="rbf", probability=True, random_state=0).fit(X_train.to_numpy(), Y_train)
explainer = shap.KernelExplainer(svm.predict_proba, X_train.to_numpy()[:40], link="logit")
shap_values = explainer.shap_values(X_test.to_numpy()[:4], nsamples=100)
shap.force_plot(explainer.expected_value[0], shap_values[0, :, 0], X_test.iloc[0, :], link="logit")
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "tutorial: random forest, summary plot": """
X, y = diabetes()
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
model = RandomForestRegressor(max_depth=6, random_state=0, n_estimators=10).fit(X_train, y_train)
shap_values = shap.TreeExplainer(model).shap_values(X_test)
shap.summary_plot(shap_values, X_test, show=False)
shap.summary_plot(shap_values, X_test, plot_type="bar", show=False)
out["values"] = shap_values
""",
    "kaggle: which values of a patient matter": """
X, y = breast()
train_X, val_X, train_y, val_y = train_test_split(X, y, random_state=1)
my_model = RandomForestClassifier(n_estimators=10, random_state=0).fit(train_X, train_y)
row_to_show = 5
data_for_prediction = val_X.iloc[row_to_show]
data_for_prediction_array = data_for_prediction.values.reshape(1, -1)
explainer = shap.TreeExplainer(my_model)
shap_values = explainer.shap_values(data_for_prediction_array)
out["values"], out["base"] = shap_values[..., 1], explainer.expected_value[1]
""",
    "kaggle: dependence of a lightgbm model": """
X, y = breast()
model = lightgbm.LGBMClassifier(n_estimators=25, verbose=-1, n_jobs=1).fit(X, y)
explainer = shap.TreeExplainer(model)
shap_values = explainer.shap_values(X)
shap.dependence_plot("mean radius", shap_values, X, interaction_index="mean texture", show=False)
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "vendor's tutorial: catboost, force plot of one object": """
X, y = diabetes()
options = {"random_seed": 1, "verbose": 0, "allow_writing_files": False}
model = catboost.CatBoostRegressor(iterations=40, learning_rate=0.1, **options).fit(X, y)
explainer = shap.TreeExplainer(model)
shap_values = explainer.shap_values(X)
shap.force_plot(explainer.expected_value, shap_values[0, :], X.iloc[0, :], matplotlib=True, show=False)
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "vendor's tutorial: catboost's pool": """
X, y = diabetes()
options = {"random_seed": 1, "verbose": 0, "allow_writing_files": False}
model = catboost.CatBoostRegressor(iterations=20, **options).fit(X, y)
shap_values = shap.TreeExplainer(model).shap_values(catboost.Pool(X, y))
out["values"] = shap_values
""",
    "answer: kernel explainer with a summary by k-means": """
X, y = diabetes()
model = KNeighborsRegressor().fit(X.to_numpy(), y)
background = shap.kmeans(X.to_numpy(), 5)
explainer = shap.KernelExplainer(model.predict, background)
rows = X.to_numpy()[:3]
shap_values = explainer.shap_values(rows, silent=True)
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "answer: a sample as the background": """
X, y = wine()
model = KNeighborsClassifier().fit(X.to_numpy()[:, :8], y)
f = lambda x: model.predict_proba(x)[:, 1]
med = np.median(X.to_numpy()[:, :8], axis=0).reshape((1, 8))
explainer = shap.KernelExplainer(f, med)
shap_values = explainer.shap_values(X.to_numpy()[:5, :8], nsamples=1000, silent=True)
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "documentation: sentiment by a linear model": """
texts = ["good film", "bad film", "good plot", "bad plot bad end", "good good end"] * 6
y = [1, 0, 1, 0, 1] * 6
vectorizer = TfidfVectorizer()
X_train = vectorizer.fit_transform(texts)
model = LogisticRegression(C=0.5).fit(X_train, y)
explainer = shap.LinearExplainer(model, X_train.toarray())
shap_values = explainer.shap_values(X_train.toarray()[:5])
names = vectorizer.get_feature_names_out()
shap.summary_plot(shap_values, X_train.toarray()[:5], feature_names=names, show=False)
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "book: coefficients of a linear regression": """
X, y = diabetes()
model = LinearRegression().fit(X, y)
background = X[:100]
explainer = shap.Explainer(model, background)
shap_values = explainer(X)
shap.plots.scatter(shap_values[:, "bmi"], show=False)
shap.plots.waterfall(shap_values[20], max_display=14, show=False)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "book: a generalised linear model as a function": """
X, y = diabetes()
X = X[["age", "bmi", "bp", "s5"]]
model = LinearRegression().fit(X, y)
explainer = shap.Explainer(model.predict, X[:50])
shap_values = explainer(X[:6])
shap.plots.beeswarm(shap_values, show=False)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "notebook: decision plot": """
X, y = breast()
model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1).fit(X, y)
explainer = shap.TreeExplainer(model)
expected_value = explainer.expected_value
features = X.iloc[:20]
shap_values = explainer.shap_values(features)
shap.decision_plot(expected_value, shap_values, features, show=False)
shap.decision_plot(expected_value, shap_values, features, link="logit", highlight=3, show=False)
out["values"], out["base"] = shap_values, expected_value
""",
    "notebook: interaction values": """
X, y = diabetes()
model = xgboost.train({"eta": 0.1, "max_depth": 3, "nthread": 1}, xgboost.DMatrix(X, label=y), 30)
explainer = shap.TreeExplainer(model)
shap_interaction_values = explainer.shap_interaction_values(X.iloc[:40, :])
shap.summary_plot(shap_interaction_values, X.iloc[:40, :], max_display=4, show=False)
shap.dependence_plot(("bmi", "s5"), shap_interaction_values, X.iloc[:40, :], show=False)
out["pairs"], out["values"] = shap_interaction_values, explainer.shap_values(X.iloc[:40, :])
""",
    "notebook: census by a booster of xgboost": """
X, y = breast()
d_train = xgboost.DMatrix(X, label=y)
params = {"eta": 0.05, "objective": "binary:logistic", "nthread": 1, "base_score": 0.4}
model = xgboost.train(params, d_train, 20)
explainer = shap.TreeExplainer(model)
shap_values = explainer.shap_values(X)
shap.force_plot(explainer.expected_value, shap_values[:50, :], X.iloc[:50, :])
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "notebook: a classifier of wine, class by class": """
X, y = wine()
model = RandomForestClassifier(n_estimators=15, random_state=2).fit(X, y)
explainer = shap.TreeExplainer(model)
shap_values = explainer(X)
shap.plots.beeswarm(shap_values[:, :, 0], show=False)
shap.plots.waterfall(shap_values[0, :, 2], show=False)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "blog: importance as a table": """
X, y = breast()
model = xgboost.XGBClassifier(n_estimators=20, n_jobs=1).fit(X, y)
shap_values = shap.TreeExplainer(model).shap_values(X)
importance = pd.DataFrame({"feature": X.columns, "value": np.abs(shap_values).mean(0)})
importance = importance.sort_values("value", ascending=False)
out["importance"] = importance["value"].to_numpy()
""",
    "blog: values add up to the prediction": """
X, y = diabetes()
model = GradientBoostingRegressor(n_estimators=30, random_state=0).fit(X, y)
explainer = shap.TreeExplainer(model)
shap_values = explainer.shap_values(X)
total = explainer.expected_value + shap_values.sum(axis=1)
assert np.abs(total - model.predict(X)).max() < 1e-4
out["total"] = total
""",
    "blog: hist gradient boosting": """
X, y = breast()
model = HistGradientBoostingClassifier(max_iter=20).fit(X.to_numpy(), y)
explainer = shap.TreeExplainer(model)
shap_values = explainer(X.to_numpy()[:40])
shap.plots.bar(shap_values, show=False)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "blog: gradient boosting, log odds": """
X, y = breast()
model = GradientBoostingClassifier(n_estimators=15, random_state=0).fit(X, y)
explainer = shap.TreeExplainer(model)
sv = explainer.shap_values(X[:30])
p = 1 / (1 + np.exp(-(explainer.expected_value[0] + sv.sum(1))))
out["probability"] = p
""",
    "answer: shap values of probabilities": """
X, y = breast()
X = X.iloc[:, :7]
model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(X, y)
data, rows = X[:30], X[100:104]
options = {"feature_perturbation": "interventional", "model_output": "probability"}
explainer = shap.TreeExplainer(model, data, **options)
shap_values = explainer.shap_values(rows)
out["base"] = explainer.expected_value
truth = (lambda x: model.predict_proba(x)[:, 1], data, rows, shap_values)
""",
    "answer: a forest against background rows": """
X, y = diabetes()
X = X[["age", "bmi", "bp", "s1", "s5", "s6"]]
model = RandomForestRegressor(n_estimators=8, max_depth=5, random_state=0).fit(X, y)
data, rows = shap.sample(X, 40, random_state=0), X[:5]
explainer = shap.TreeExplainer(model, data)
shap_values = explainer.shap_values(rows, check_additivity=False)
truth = (model.predict, data, rows, shap_values)
""",
    "answer: the whole training data as the background": """
X, y = diabetes()
X = X[["age", "bmi", "bp", "s5", "s6"]]
model = xgboost.XGBRegressor(n_estimators=15, max_depth=3, n_jobs=1).fit(X, y)
explainer = shap.Explainer(model, X)
shap_values = explainer(X[:4]).values
truth = (model.predict, X, X[:4], shap_values)
""",
    "notebook: anomalies": """
X, y = wine()
forest = IsolationForest(n_estimators=20, random_state=0).fit(X.to_numpy())
explainer = shap.TreeExplainer(forest)
shap_values = explainer.shap_values(X.to_numpy())
shap.summary_plot(shap_values, X, show=False)
out["values"] = shap_values
""",
    "course: one tree": """
X, y = iris()
clf = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
explainer = shap.TreeExplainer(clf)
shap_values = explainer.shap_values(X)
shap.summary_plot(shap_values[:, :, 1], X, show=False)
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "course: extra trees": """
X, y = diabetes()
reg = ExtraTreesRegressor(n_estimators=10, max_depth=6, random_state=0).fit(X, y)
shap_values = shap.TreeExplainer(reg)(X[:50])
shap.plots.heatmap(shap_values, show=False)
out["values"] = shap_values.values
""",
    "answer: the last step of a pipeline": """
X, y = breast()
clf = lightgbm.LGBMClassifier(n_estimators=15, verbose=-1, n_jobs=1)
pipe = Pipeline([("scale", StandardScaler()), ("clf", clf)])
pipe.set_output(transform="pandas").fit(X, y)
observations = pipe["scale"].transform(X[:25])
shap_values = shap.TreeExplainer(pipe["clf"]).shap_values(observations)
out["values"] = shap_values
""",
    "answer: a pipeline of texts and numbers": """
X, y = diabetes()
X = X[["age", "bmi"]].assign(sex=np.where(X["sex"] > 0, "f", "m"))
columns = X.columns
encode = ColumnTransformer([("sex", OneHotEncoder(), ["sex"])], remainder="passthrough")
pipe = Pipeline([("encode", encode), ("ridge", Ridge())]).fit(X, y)
f = lambda x: pipe.predict(pd.DataFrame(x, columns=columns))
explainer = shap.KernelExplainer(f, X[:30])
shap_values = explainer.shap_values(X[:3], silent=True)
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "answer: a network": """
X, y = iris()
net = MLPClassifier(hidden_layer_sizes=(8,), max_iter=300, random_state=0).fit(X.to_numpy(), y)
explainer = shap.KernelExplainer(net.predict_proba, X.to_numpy()[::10])
shap_values = explainer(X.to_numpy()[:3], silent=True)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "documentation: cohorts": """
X, y = diabetes()
model = xgboost.XGBRegressor(n_estimators=15, n_jobs=1).fit(X, y)
shap_values = shap.Explainer(model)(X[:60])
old = ["old" if age > 0 else "young" for age in X["age"][:60]]
shap.plots.bar(shap_values.cohorts(old).abs.mean(0), show=False)
out["mean"] = shap_values.abs.mean(0).values
""",
    "kaggle: several classes of lightgbm": """
X, y = wine()
model = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1).fit(X, y)
explainer = shap.TreeExplainer(model)
shap_values = explainer.shap_values(X)
shap.summary_plot([shap_values[:, :, k] for k in range(3)], X, plot_type="bar", show=False)
out["values"], out["base"] = shap_values, explainer.expected_value
""",
    "kaggle: several classes of xgboost": """
X, y = iris()
model = xgboost.XGBClassifier(n_estimators=10, n_jobs=1).fit(X, y)
explainer = shap.TreeExplainer(model)
shap_values = explainer(X)
shap.plots.bar(shap_values[..., 1], show=False)
out["values"], out["base"] = shap_values.values, explainer.expected_value
""",
    "kaggle: counts": """
X, y = diabetes()
model = lightgbm.LGBMRegressor(objective="poisson", n_estimators=15, verbose=-1, n_jobs=1).fit(X, y)
explainer = shap.TreeExplainer(model)
out["values"], out["base"] = explainer.shap_values(X), explainer.expected_value
""",
    "blog: values of every fold": """
X, y = diabetes()
collected = []
for train, test in KFold(3, shuffle=True, random_state=0).split(X):
    model = RandomForestRegressor(n_estimators=6, max_depth=5, random_state=0)
    model.fit(X.iloc[train], y.iloc[train])
    collected.append(shap.TreeExplainer(model).shap_values(X.iloc[test]))
out["values"] = np.concatenate(collected)
""",
    "blog: clusters of explanations": """
X, y = breast()
model = xgboost.XGBClassifier(n_estimators=15, n_jobs=1).fit(X, y)
s = shap.TreeExplainer(model).shap_values(X)
pca = PCA(2).fit_transform(s.astype(np.float64))
out["sizes"] = np.abs(pca)
""",
    "documentation: permutations of a function": """
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6))
f = lambda x: x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + x[:, 5] ** 2
explainer = shap.PermutationExplainer(f, X[:30], seed=1)
shap_values = explainer(X[40:44], silent=True)
out["base"] = shap_values.base_values
truth = (f, X[:30], X[40:44], shap_values.values)
""",
    "documentation: all coalitions of a function": """
rng = np.random.default_rng(0)
X = rng.integers(0, 2, size=(64, 5)).astype(float)
f = lambda x: np.logical_xor(x[:, 0], x[:, 1]) + 2.0 * x[:, 2]
explainer = shap.ExactExplainer(f, X)
shap_values = explainer(X[:6], silent=True)
shap.plots.bar(shap_values, show=False)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "answer: eleven columns by the kernel": """
rng = np.random.default_rng(0)
X = rng.normal(size=(50, 11))
w = rng.normal(size=11)
f = lambda x: np.tanh(x @ w)
explainer = shap.KernelExplainer(f, X[:20])
values = explainer.shap_values(X[30:32], silent=True)
out["base"] = explainer.expected_value
truth = (f, X[:20], X[30:32], values)
""",
    "kaggle: pandas categories in lightgbm": """
X, y = diabetes()
X = X[["age", "bmi", "s5"]].assign(sex=pd.Categorical(np.where(X["sex"] > 0, "f", "m")))
model = lightgbm.LGBMRegressor(n_estimators=15, verbose=-1, n_jobs=1).fit(X, y)
shap_values = shap.TreeExplainer(model).shap_values(X[:50])
out["values"] = shap_values
""",
    "vendor's tutorial: missing values of xgboost": """
X, y = diabetes()
X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
model = xgboost.XGBRegressor(n_estimators=15, n_jobs=1).fit(X, y)
explainer = shap.TreeExplainer(model)
shap_values = explainer(X[:40], check_additivity=True)
shap.plots.scatter(shap_values[:, "bmi"], color=shap_values, show=False)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "vendor's tutorial: a masker": """
X, y = breast()
X = X.iloc[:, :8]
model = LogisticRegression(max_iter=5000).fit(X, y)
masker = shap.maskers.Independent(X, max_samples=100)
explainer = shap.LinearExplainer(model, masker)
shap_values = explainer(X[:10])
shap.plots.waterfall(shap_values[0], show=False)
out["values"], out["base"] = shap_values.values, shap_values.base_values
""",
    "paper's supplement: old names of arguments": """
X, y = wine()
model = ExtraTreesClassifier(n_estimators=10, random_state=0).fit(X, y)
explainer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent", model_output="raw")
shap_values = explainer.shap_values(X[:30], check_additivity=False)
by_class = [shap_values[..., k] for k in range(3)]
shap.multioutput_decision_plot(explainer.expected_value.tolist(), by_class, 0, show=False)
out["values"] = shap_values
""",
    "paper's supplement: correlation of two models' values": """
X, y = diabetes()
forest = RandomForestRegressor(10, max_depth=4, random_state=0).fit(X, y)
first = shap.TreeExplainer(forest).shap_values(X[:80])
second = shap.LinearExplainer(Ridge().fit(X, y), X[:100]).shap_values(X[:80])
out["correlation"] = [np.corrcoef(a, b)[0, 1] for a, b in zip(first.T, second.T)]
""",
}
