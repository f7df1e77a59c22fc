// From histograms to the best classic stump: edges exactly, bounds for the cuts between them, and a
// scan of the bins whose bounds do not rule them out.
//
// It is the search that `cpu/split/search.py` explains, in four kernels that do not wait for the host:
// `weigh` updates the bins' weights and bounds, `list_bins` lists the bins that may hold a better
// cut than the best edge, `scan` searches them, `finish` takes the best cut and writes the round's
// result. If the sorted order of a feature is needed and is not on the device, the result says so;
// the host then provides the order, and launches the last three kernels again.

#include "common.cuh"
#include "search.cuh"
#include "profiles.cuh"

// Compute the weights of all bins, each feature's best edge, and bounds for the cuts between edges.
//
// rescale_of_step  see `update`
KERNEL weigh(const int64* histograms, const PreparedTable table, const Round round,
             Profile* profiles, const int64* rescale_of_step) {
  const int64 rescale_exponent = *rescale_of_step;
  int64(*running)[256] = reinterpret_cast<int64(*)[256]>(shared);
  BestEdge* found = reinterpret_cast<BestEdge*>(running + 2);
  if (blockIdx.x == 0 && threadIdx.x == 0) begin_search(round);
  for (int64 j = blockIdx.x; j < table.n_features; j += gridDim.x) {
    Feature feature = table.features[j];
    int64 n_bins = feature.n_bins;
    const int64* own = histograms + j * SLOTS;
    Profile* profile = profiles + feature.first;
    int64* bound = round.bounds + feature.first;
    const int64* score_left = read_weights(own, n_bins, profile, running);
    int64 present = n_bins > 0 ? score_left[n_bins - 1] : 0;
    int64 missing = own[256 + MISSING] - own[MISSING], extra = absolute(missing);
    int64 direction = direction_of(round, j);  // a constraint allows one polarity only

    BestEdge mine = {NO_SCORE, 0, 1};
    FOR_BLOCK(b, 0, n_bins) {
      Profile p = profile[b];
      const Bin bin = table.bins[feature.first + b];
      update(p, score_left[b] - (p.positive - p.negative), rescale_exponent);
      profile[b] = p;
      Swing swing = swing_of(p);
      int64 rising = 2 * (p.left + swing.up) - present, falling = present - 2 * (p.left - swing.down);
      int64 most = direction > 0 ? falling : direction < 0 ? rising : larger(rising, falling);
      bound[b] = bin.has_cuts ? most + extra : NO_SCORE;
      int64 agreement = 2 * score_left[b] - present;
      if (b + 1 < n_bins && direction * agreement <= 0)
        mine.append({absolute(agreement) + extra, bin.offset + bin.n_inside - 1,
                     direction ? -direction : agreement >= 0 ? 1 : -1});
    }
    if (threadIdx.x == 0 && are_opposed(present, missing))
      mine.append(above_all_values(feature, present, missing));
    combine(mine, found);
    if (threadIdx.x == 0) {
      round.wanted[j] = 0;
      round.edges[j] = {mine.score, mine.position, mine.polarity, present, missing};
    }
  }
}

// List the bins that may hold a better cut than the best one known, and cut them into pieces. If a
// feature's sorted order is not on the device, the feature is marked as wanted instead.
KERNEL list_bins(const PreparedTable table, const Round round, Listed* listed, Piece* pieces) {
  Counts* counts = round.counts;
  Best mine = round.result->best;
  FOR_BLOCK(j, 0, table.n_features) mine.append(best_of(round.edges, j));
  Best* found = reinterpret_cast<Best*>(shared);
  combine(mine, found);
  Best best = found[0];
  FOR_GRID(b, 0, table.n_bins) {
    Bin bin = table.bins[b];
    int64 bound = round.bounds[b];
    if (!bin.has_cuts || bound < best.score) continue;
    if (bound == best.score) {
      if (bin.feature > best.feature) continue;
      if (bin.feature == best.feature && bin.offset >= best.position) continue;
    }
    if (table.orders[bin.feature] == 0) {
      if (atomicExch(&round.wanted[bin.feature], 1u) == 0) add_to(&counts->n_wanted, 1);
      continue;
    }
    int64 piece = piece_of(bin.n_inside, round.pieces), n = (bin.n_inside - 1 + piece - 1) / piece;
    int64 at = atomicAdd(reinterpret_cast<uint64*>(&counts->n_pieces), uint64(n));
    listed[atomicAdd(reinterpret_cast<uint64*>(&counts->n_listed), 1ull)] = {b, at};
    for (int64 k = 0; k < n; k++) pieces[at + k] = {int(b), int(k)};
  }
}

// Find how far score_left rises and falls over each piece.
KERNEL scan(const Piece* pieces, const PreparedTable table, const Round round,
            const double* signed_weights, Extremes* extremes) {
  scan_pieces(pieces, table, round, signed_weights, NOWHERE, extremes);
}

// Take the best cut of all, and keep what the scan found of the bins. One block.
KERNEL_OF_FULL_BLOCKS finish(const Listed* listed, const Extremes* extremes,
                             const PreparedTable table, const Round round, Profile* profiles) {
  Result* result = round.result;
  Best mine = result->best;
  FOR_BLOCK(j, 0, table.n_features) mine.append(best_of(round.edges, j));
  FOR_BLOCK(i, 0, round.counts->n_listed) {
    int64 b = listed[i].bin;
    Bin bin = table.bins[b];
    Extremes found = joined(bin, round, extremes + listed[i].first_piece, NOWHERE);
    Profile* profile = &profiles[b];
    note(profile, found);
    round.bounds[b] = NO_SCORE;  // its best cuts are compared here
    if (found.high_at < 0) continue;
    const Edge& edge = round.edges[bin.feature];
    int64 extra = absolute(edge.missing);
    int64 rising = 2 * (profile->left + found.high) - edge.present + extra;
    int64 falling = edge.present - 2 * (profile->left + found.low) + extra;
    int64 direction = direction_of(round, bin.feature);
    if (direction <= 0) mine.append({rising, bin.feature, found.high_at, 1});
    if (direction >= 0) mine.append({falling, bin.feature, found.low_at, -1});
  }
  combine(mine, reinterpret_cast<Best*>(shared));
  if (threadIdx.x != 0 || !take(round, mine)) return;
  const Edge& edge = round.edges[mine.feature];
  result->missing = edge.missing;
  bool is_edge = edge.score == mine.score && edge.position == mine.position;
  if (!is_edge) write_neighbours(table, mine.feature, mine.position, &result->beside[0]);
}
