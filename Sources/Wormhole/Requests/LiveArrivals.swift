internal import SharedContainer

/// What has come and nobody has begun to take yet, in the order in which it came.
///
/// The notices tell that order. Where some were lost, a listing shows what is there, and the names
/// say when each was sent. From the loss to the end of the listing what is noticed is held back: it
/// came later than what was lost.
///
/// A listing may show what comes meanwhile, and miss what came before that. So of what was sent
/// since the listing began, it tells nothing: that will be noticed, or lost once more, which makes
/// another listing. All else that it shows is sure to be whole, as whoever sends something has put
/// all before it.
struct LiveArrivals {
  private var answers: [LiveName] = []
  private var others: [LiveName] = []
  private var held: [LiveName] = []
  /// How often notices were lost; at first the folder has not been listed either.
  private(set) var losses = 1
  /// Of these, how many a listing has made good.
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

  /// Takes in what a listing has shown.
  ///
  /// - Parameters:
  ///   - began: when it did, in nanoseconds since the machine was started.
  ///   - ended: what is named for a later moment was not sent by this clock.
  ///   - losses: how often notices had been lost when it began.
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

  /// None of these waits for the order of the others.
  mutating func takeAnswers() -> [LiveName] {
    defer { answers = [] }
    return answers
  }

  mutating func takeOthers() -> [LiveName] {
    defer { others = [] }
    return others
  }
}
