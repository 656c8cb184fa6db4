"""An explanation in an app of Gradio: python with_gradio.py."""

import gradio as gr
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
explainer = limes.TabularExplainer(RandomForestRegressor(20, random_state=0).fit(X, y), X)


def explain(row: float) -> str:
    return explainer(X.iloc[[int(row)]])._repr_html_()  # what a notebook shows; names are escaped


app = gr.Interface(explain, gr.Number(3, label="patient"), gr.HTML(), api_name="explain")

if __name__ == "__main__":
    app.launch()
