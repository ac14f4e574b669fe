internal import FoundationEssentials
package import SharedContainer
internal import Syscalls

/// What `TestPeer`, the program that tests start, stop and kill, can be told to do.
///
/// It stands on the command line as JSON. A new job is a case here, a line in `Peer+Jobs.swift`,
/// and a function beside the others.
package indirect enum PeerJob: Codable, Sendable {
  // MARK: A few calls on files

  /// Makes an empty file.
  case touch(_ directory: String, _ name: String)
  /// Writes a file beside it, syncs it and renames it over.
  case replace(_ directory: String, _ name: String, _ text: String)
  /// Says the names in it, a line each, in order.
  case list(_ directory: String)
  /// Says the numbers of the descriptors it was born with.
  case descriptors
  /// Starts the peer once more, for that job.
  case respawn(PeerJob)
  /// Makes a directory on a second thread; the first one waits.
  case bystander(_ directory: String, _ name: String)
  /// Takes both kinds of lock on a file and keeps them.
  case hold(_ directory: String, _ name: String)
  /// Says that it is there, and waits for a minute.
  case linger
  /// Opens a file below a directory, first with no descriptor left, and says how both went.
  case openBeneath(_ directory: String, _ path: String)

  // MARK: Containers, which are made if need be

  /// Opens it.
  case open(_ container: String)
  /// Adds 1 that many times, saying each time what the number then was.
  case add(
    _ container: String, _ channel: String, times: Int, durability: Durability = .process)
  /// Says the number that is there.
  case read(_ container: String, _ channel: String)
  /// Stops itself inside an update.
  case stopInside(_ container: String, _ channel: String)
  /// Stops itself while it holds a named lock, and says afterwards whether it was superseded.
  case holdLock(_ container: String, _ name: String)
  /// Adds 1 as often as it can between two moments of the monotonic clock.
  ///
  /// Each sum goes to the log as soon as it is known, a line each; in the end it says how many
  /// there were, and how many nanoseconds the longest took.
  case addBetween(
    _ container: String, _ channel: String, log: String, start: Int64, end: Int64)
  /// Takes the lock, does as a library might that forks, says the number of its copy, and waits.
  case forkInside(_ container: String, _ channel: String)
  /// Takes the lock, starts a program that waits, says its number, and waits.
  case spawnInside(_ container: String, _ channel: String)
  /// Adds 1 that many times, and says after each what the number then was, and when the change
  /// began and ended.
  case acknowledge(_ container: String, _ channel: String, durability: Durability, times: Int)
  /// Says each number that it hears of, until it is that one, and whether it is told by the kernel
  /// or polls.
  case watch(_ container: String, _ channel: String, until: Int)
  /// Watches as many channels, each named by a number, says how many descriptors that leaves open,
  /// and ends when three of them have another value.
  case watchMany(_ container: String, count: Int)
  /// Says which channels come and go, until one of that name comes.
  case names(_ container: String, until: String)
  /// Opens, lists, reads, and adds, and says how each ended.
  case probe(_ container: String, _ channel: String)
  /// Counts on as often as it can until a moment of the monotonic clock, and writes to the log, a
  /// line each, which count it was and how far it came.
  case mark(_ container: String, _ channel: String, log: String, end: Int64)
  /// Removes it, and says each time whether there was one, and before what it clears.
  case remove(_ container: String, _ channel: String, times: Int)

  // MARK: Channels, through the module that users import

  /// Adds 1 that many times.
  case count(_ container: String, _ channel: String, times: Int)
  /// Adds 1 again and again, and says a line for each.
  case countAloud(_ container: String, _ channel: String)
  /// Puts the numbers, one after the other.
  case put(_ container: String, _ channel: String, _ numbers: ClosedRange<Int>)
  /// Puts a number in the container of a group.
  case putInGroup(_ group: String, _ channel: String, _ number: Int)
  /// Stops itself inside an update that adds 1.
  case stopUpdating(_ container: String, _ channel: String)
  /// Posts a notice.
  case post(_ container: String, _ notice: String)
  /// Sets as many keys to their number.
  case set(_ container: String, _ suite: String, prefix: String, count: Int)

  // MARK: Members

  /// Joins and leaves, saying so.
  case join(_ container: String, _ name: String)
  /// Joins, says as which incarnation, and stays.
  case be(_ container: String, _ name: String, info: [String: String] = [:])
  /// Joins, makes a copy of itself, says its number, and stays.
  case beForked(_ container: String, _ name: String)
  /// Joins, starts a program that stays, says its number, and stays too.
  case beSpawned(_ container: String, _ name: String)
  /// Joins, makes a copy of itself, says its number, leaves once the file is there, and stays.
  case leaveForked(_ container: String, _ name: String, once: String)
  /// Joins, and leaves once the file is there.
  ///
  /// While it does either, another thread makes copies of the process and says their numbers.
  case forkWhileJoining(_ container: String, _ name: String, leaveOnce: String)
  /// In each round all of the processes try to join at once; says in which rounds this one could.
  case joinInTurns(_ container: String, _ name: String, processes: Int, rounds: Int)
  /// Joins under so many names, says under how many it did and what stood in the way of more, and
  /// leaves.
  case joinMany(_ container: String, count: Int)
  /// Says how the member can be reached.
  case ask(_ container: String, _ name: String)
  /// Says how the member can be reached, and each change, and on standard error what goes to the
  /// log.
  case watchMember(_ container: String, _ name: String)
  /// Begins one of each kind and stops it, over and over, and says what the process takes before
  /// and after: kilobytes, descriptors and threads.
  case beginAndStop(_ container: String, rounds: Int)

  // MARK: Copies of the process

  /// Opens a guarded file and one that is not, makes a copy of itself, and one of a copy that has
  /// another file under the guarded number; says the number of the first, those of the files, and
  /// that of the second.
  case guardForks(_ directory: String, _ name: String)
  /// Opens guarded files until it cannot, says why, closes them, and opens one more.
  case guardMany(_ directory: String, _ name: String)
  /// Says names that it has made up, then those of a copy by fork, and of one by a bare clone, and
  /// then its own again, a line each.
  case nameCopies
  /// Has a copy of itself use what it inherits, and says what comes of it.
  case inherit(_ directory: String, by: Copying)
  /// Makes copies of itself while it is busy, one after the other, and has each try what it has
  /// inherited, drop it, and open the container anew.
  ///
  /// Then it makes one more that does nothing but drop it all and stay, says its number, and stays.
  case forkBusy(_ container: String, copies: Int)

  // MARK: Messages and files

  /// Sends the numbers, that many in a call, and says after each call what the last one was.
  ///
  /// - Parameters:
  ///   - waits: it waits for room.
  ///   - isNamed: the messages have ids.
  case send(
    _ container: String, from: String, to: String, _ numbers: Range<Int>, batch: Int = 1,
    durability: Durability = .process, waits: Bool = false, isNamed: Bool = false)
  /// Writes a line for each message, the number, the attempt and whether it is marked, then
  /// acknowledges it and writes another line; ends when it has had the last.
  ///
  /// The poison kills it. Errors in its log go to standard error.
  case receive(_ container: String, _ name: String, log: String, until: Int, poison: Int? = nil)
  /// Receives one message after the other and refuses each, until there is nothing more in hand or
  /// waiting.
  case refuse(_ container: String, _ name: String, attempts: Int)
  /// Cancels what is outstanding, and says what it could.
  case cancel(_ container: String, from: String, to: String)
  /// Says how messages ended, as many.
  case outcomes(_ container: String, _ name: String, count: Int)
  /// Receives that many, says for how many nanoseconds processors worked on it, and how much memory
  /// the process had at most, in KiB.
  case drain(_ container: String, _ name: String, count: Int)
  /// Sends the numbers from 1 on, each again until it is sent, and between all attempts one to the
  /// other, until the file is there.
  ///
  /// Says each that is sent, and why one is not.
  case insist(_ container: String, from: String, to: String, other: String, until: String)
  /// Sends `watch` a message of the id `n` and makes a copy of itself in the middle of that; says
  /// the number of the copy, receives the message, and says how sending it once more went.
  case sendForked(_ container: String)
  /// Sends a file to `watch` without joining, and says so.
  case sendFile(_ container: String, _ file: String, moves: Bool, durability: Durability)
  /// Joins as `watch`, takes one file to a path if it is to, acknowledges it, says so, and leaves.
  case receiveFile(_ container: String, to: String, takes: Bool)
  /// Sends itself a file, receives it, takes it if a path is given, and says by how many kilobytes
  /// the most memory it ever had has grown.
  case fileMemory(_ container: String, _ file: String, to: String? = nil)

  // MARK: Requests and waking

  /// Joins, says as which incarnation, and answers each number with its double; says each question
  /// that it begins with.
  case respond(_ container: String, _ name: String, _ manner: Responding = .plainly)
  /// Joins, says so, answers one request with its double, leaves, and says so; leaves without, if
  /// none comes in three seconds.
  case respondOnce(_ container: String, _ name: String)
  /// Joins, says as which incarnation, and says each immediate message.
  case hear(_ container: String, _ name: String)
  /// Joins and leaves that often, and says each immediate message with the incarnation that has
  /// heard it.
  case hearOften(_ container: String, _ name: String, times: Int)
  /// Asks all the numbers, one after the other, and checks that each is answered with its double;
  /// as a member of that name, or as a guest.
  case request(
    _ container: String, of: String, _ numbers: ClosedRange<Int>, as: String? = nil,
    milliseconds: Int = 30_000)
  /// Wakes a member, says how that ended, and stays if it is to.
  case wake(_ container: String, _ name: String, milliseconds: Int, stays: Bool = false)
  /// What is started by those that wake: adds a line to the file that says what it was born with,
  /// joins, and stays for as long as the file is there.
  case awaken(_ file: String, _ name: String, _ manner: Awakening = .properly)

  // MARK: Coordination; where the groups lie, WORMHOLE_ROOT says

  /// Says `inside`, does what it is told, and says how it ended.
  case coordinate(
    _ kind: Coordination, _ path: String, Inside, takeOverAfterMilliseconds: Int? = nil)
  /// Moves a file in an access, and says so to those who present it.
  case moveInside(_ path: String, to: String)
  /// Adds 1 to the number in a file, as plain code does it.
  case coordinateAdd(_ path: String, times: Int)
  /// Presents a file, and says what it is asked and told.
  case present(_ path: String, Presenting)
  /// Presents files and never answers for them, and then one properly.
  case presentAmong(_ hung: [String], _ path: String)
  /// Presents a file while it adds 1 to the number in it as often, some of it only when others ask
  /// for it; says each number that it shows, and when it has added all.
  case presentAndAdd(_ path: String, times: Int)

  // MARK: Others

  /// Does a job as that user and group. Only root can; another ends with code 77.
  case `as`(user: UInt32, group: UInt32, PeerJob)
  /// Says each number that it is sent, and answers each with the next, in the container and over
  /// the link that the environment names.
  case linked(_ name: String)
  /// Begins as a test does, and says where a group lies, here and in a process that it starts.
  case testGroups(_ group: String)
}

extension PeerJob {
  package enum Copying: String, Codable, Sendable { case fork, clone, unwiped }

  /// How one answers requests.
  package enum Responding: String, Codable, Sendable {
    case plainly
    /// Says nothing of questions.
    case quietly
    /// Stops itself before the first answer.
    case stopping
    /// Kills itself at a question.
    case dying
    /// Never answers.
    case never
  }

  /// What one does that was started by those that wake.
  package enum Awakening: String, Codable, Sendable {
    case properly
    /// Ends with code 3 before it joins.
    case crashing
    /// Ends by a signal before it joins.
    case dying
    /// Does not join.
    case neverJoining
    /// Leaves as soon as it has joined.
    case leaving
    /// Answers each number with its double.
    case answering
  }

  package enum Coordination: String, Codable, Sendable { case read, write, replace }

  /// What a presenter does when it is asked.
  package enum Presenting: Codable, Sendable {
    case plainly
    /// It is only told of changes.
    case listening
    /// Nothing until the file is there.
    case hang(until: String)
    /// Writes the text to the file, and says so.
    case save(String)
  }

  /// What one does inside an access.
  package enum Inside: Codable, Sendable {
    case nothing
    /// Stops itself, and writes `late` to the file afterwards, unless it only reads.
    case stop
    /// Stays for a minute.
    case linger
    case write(String)
  }
}

extension PeerJob {
  /// How the job stands on the peer's command line.
  package var arguments: [String] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    do {
      return [String(decoding: try encoder.encode(self), as: UTF8.self)]
    } catch {
      preconditionFailure("a job cannot be said: \(error)")
    }
  }

  /// The job that stands on a command line.
  package init(arguments: [String]) throws {
    guard arguments.count == 1 else { throw Errno.invalidArgument }
    self = try JSONDecoder().decode(PeerJob.self, from: Data(arguments[0].utf8))
  }

  /// The program that does it.
  package static let program = Programs.built("TestPeer")
}

extension Running {
  /// Starts the peer.
  package convenience init(_ job: PeerJob, environment: [String] = []) throws {
    try self.init(PeerJob.program, job.arguments, environment: environment)
  }
}

/// Has the peer do a job to its end.
package func run(
  _ job: PeerJob, environment: [String] = [], within time: Duration = patience
) throws -> Outcome {
  try Running(job, environment: environment).outcome(within: time)
}

extension Durability: Codable {
  package init(from decoder: any Decoder) throws {
    self = try decoder.singleValueContainer().decode(Bool.self) ? .power : .process
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(self == .power)
  }
}
