internal import WormholeContainerStorage

/// The files that have arrived and are not taken yet, in the order of arrival.
///
/// The notices give the order. After a loss of notices, a listing shows which files exist, and
/// their names contain the times of sending. From the loss to the end of the listing, newly noticed
/// files are held back: they arrived later than the files whose notices were lost.
///
/// A listing may show an arrival during the listing, and miss an arrival before it. Therefore the
/// listing's files that were sent after its beginning are ignored: their notices will arrive, or
/// are lost again, which causes another listing. The other files of the listing are complete,
/// because a sender places each file only after all its earlier ones.
struct LiveArrivals: Hashable {
  private var answers: [LiveName] = []
  private var others: [LiveName] = []
  private var held: [LiveName] = []
  /// The number of losses of notices.
  ///
  /// Begins at one, because the folder has not been listed.
  private(set) var losses = 1
  /// The number of losses that a listing has repaired.
  private var made = 0

  var hasAnswers: Bool { !answers.isEmpty }
  var hasOthers: Bool { !others.isEmpty }

  mutating func notice(_ names: [LiveName]) {
    for name in names {
      if name.letter.isAnswer {
        answers.append(name)
      } else if made == losses || Mutants.has(.noHoldingBack) {
        others.append(name)
      } else {
        held.append(name)
      }
    }
  }

  mutating func lose() { losses += 1 }

  /// Adds the files of a listing.
  ///
  /// - Parameters:
  ///   - began: the beginning of the listing, in nanoseconds since the machine was started.
  ///   - ended: the end of the listing; a name with a later time was not made with this clock.
  ///   - losses: the number of losses when the listing began.
  mutating func find(_ names: [LiveName], from began: Int64, to ended: Int64, losses: Int) {
    answers += names.filter(\.letter.isAnswer)
    others +=
      names
      .filter { !$0.letter.isAnswer && !(began < $0.sent && $0.sent <= ended) }
      .sorted { $0.text < $1.text }
    made = max(made, losses)
    guard made == self.losses else { return }
    others += held
    held = []
  }

  /// Replies do not wait for the order of the other files.
  mutating func takeAnswers() -> [LiveName] {
    defer { answers = [] }
    return answers
  }

  mutating func takeOthers() -> [LiveName] {
    defer { others = [] }
    return others
  }
}
