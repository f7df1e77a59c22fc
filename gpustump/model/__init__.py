"""The finished model: scores, explanations, and a file.

    additive       a sum of terms with K outputs: partitions and what their regions vote
    members        where the terms come from: stumps with discrete votes, splits with any
    step_tables    the same sum as one step function for each feature
    bags           the average of several models, and which of them each term is from
    ensemble       the classifier
    encoding       how a table's columns become the model's features
    explanation    each feature's part in a score, and in all scores of a table
    summary        a model in one line, and as a small table for notebooks
    class_labels   what labels the classes of a model may have
    class_scores   classes, labels and probabilities from scores
    stump_rows     stumps and votes as the rows of a file, and back, every value checked
    region_rows    the same for splits whose regions have votes of their own
    category_rows  the same for sets of categories
    row_rules      what the values in rows must be
    document       a model as the document in its file, and back, every part checked
    model_file     a document as JSON: exact, and refused if anything in it has changed
    whole_file     files that appear whole or not at all
    temporary_files  how they are named, and removed after processes that were killed

Nothing here knows how a model is trained.
"""
