param_names = {}
