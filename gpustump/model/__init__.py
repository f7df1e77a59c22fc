"""The finished model: scores, explanations, and a file.

    additive       a sum of terms with K outputs: hypotheses and what their regions vote
    step_tables    the same sum as one step function for each feature
    ensemble       a classifier for two classes or more on top of it
    explanation    each feature's part in a score, and in all scores of a table
    summary        a model in one line, and as a small table for notebooks
    class_labels   what labels the classes of a model may have
    stump_rows     stumps and votes as the rows of a file, and back, every value checked
    document       a model as the document in its file, and back, every part checked
    model_file     a document as JSON: exact, and refused if anything in it has changed
    whole_file     files that appear whole or not at all
    temporary_files  their names, and what is left of processes that were killed

Nothing here knows how a model is trained.
"""
