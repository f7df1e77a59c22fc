"""The search for the best cut, and the sums that it needs.

    contract           what every engine offers, and the one order of ties between cuts
    route              which engine trains a table, and where; decided once, as a value
    objective          the loss, what a cut gains, and the number of outputs
    gain               what a cut gains, for every kind of votes
    monotone           which cuts a monotone constraint allows
    movement           how far a step moves what engines keep of a bin from round to round
    category_columns   the numbers of the categories of categorical features
    category_search    the best set of categories of a round
    category_table     an engine's table with categorical features
    sparse_order       the sorted columns of a sparse table
    quadrants          the best cut of a pair of features into four regions
    reference/         the scan in the array API, on arrays of any library
    cpu/               compiled kernels for the CPU
    cuda/              compiled kernels for CUDA devices
    cluster/           rows in many places, which answer the CPU engine's search together
    handover           a run that begins on one engine and goes on with another
    batched_rounds     many rounds in one call of an engine
    powers             tables of exponentials, from which kernels compute factors
    pair_runs          runs of boosting by pairs of features, by the engine that suits them
    prediction         the sum of step functions, by the kernels that suit the table
    running_scores     scores that grow term by term, for stages and early stopping
    held_out           what early stopping adds up, where the CPU kernels are in use
    integer_weights    sample weights as integers, whose sums depend on no order
    threads            the threads that the CPU kernels run on
    announcements      messages on stderr

Engines never import each other, except that `cluster` uses the CPU engine's search, and the kernels
of both kinds. All return the same integers. Nothing here knows rounds or files.
"""
