"""An explanation in an app of Streamlit: streamlit run with_streamlit.py."""

import streamlit as st
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestRegressor

import limes


@st.cache_resource
def fitted():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return limes.TabularExplainer(RandomForestRegressor(20, random_state=0).fit(X, y), X), X


explainer, X = fitted()
row = st.number_input("patient", 0, len(X) - 1, 3)
st.components.v1.html(explainer(X.iloc[[row]]).to_html(), height=640, scrolling=True)
