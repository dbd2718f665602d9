"""Many runs from one YAML file: variants × grid × seeds, each as the launcher would run it.

Nothing is imported here: the process of an attempt needs few of these modules.
"""
