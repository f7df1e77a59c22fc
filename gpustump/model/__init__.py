"""The finished model: scores, explanations, and a file.

    additive       a sum of terms with K outputs, and the same sum as one step function a feature
    members        where the terms come from: stumps with discrete votes, splits with any
    bags           the average of several models, and which of them each term is from
    pairs          what pairs of features add
    edits          terms that were switched off after training, or made flat over a range
    classes        labels of classes; classes, labels and probabilities from scores
    encoding       how a table's columns become the model's features
    explanation    each feature's part in a score, and in all scores of a table
    summary        a model in one line, and as a small table for notebooks
    ensemble       the model that predicts, explains, and is saved
    columns        the columns of its table, each with the features that it became
    rows           hypotheses and votes as the rows of a file, and back, every value checked
    document       a model as the document in its file, and back, every part checked
    model_file     a document as JSON: exact, and refused if anything in it has changed
    whole_file     files that appear whole or not at all

Nothing here knows how a model is trained.
"""
