/// Guesses of the intended word.
package enum Spelling {
  /// Returns the known word at a distance of at most two letters, or one for short words; nil if no
  /// word is as near, or several words are equally near.
  package static func guess(_ word: String, among known: [String]) -> String? {
    let most = word.count < 5 ? 1 : 2
    var best = (distance: most + 1, words: [String]())
    for candidate in known {
      let distance = distance(Array(word), Array(candidate))
      if distance < best.distance { best = (distance, []) }
      if distance == best.distance, distance <= most { best.words.append(candidate) }
    }
    return best.words.count == 1 ? best.words[0] : nil
  }

  /// Returns how many letters must be inserted, removed, changed, or swapped with the next letter.
  private static func distance(_ from: [Character], _ to: [Character]) -> Int {
    var before: [Int] = []
    var last = Array(0...to.count)
    for (row, letter) in from.enumerated() {
      var next = [row + 1]
      for (column, other) in to.enumerated() {
        var least = min(next[column] + 1, last[column + 1] + 1)
        least = min(least, last[column] + (letter == other ? 0 : 1))
        if row > 0, column > 0, letter == to[column - 1], other == from[row - 1] {
          least = min(least, before[column - 1] + 1)
        }
        next.append(least)
      }
      (before, last) = (last, next)
    }
    return last[to.count]
  }
}
