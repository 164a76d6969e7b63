// special
