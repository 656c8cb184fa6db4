"""How large reports are, how long they take to be written, and how soon a browser has drawn them."""
