internal import FoundationEssentials
package import WormholeContainerStorage
internal import WormholeSyscalls

/// A job for `TestPeer`, the program that tests start, stop and kill.
///
/// A job is passed on the command line as JSON. A new job is a case here, a line in
/// `Peer+Jobs.swift`, and a function beside the existing functions.
package indirect enum PeerJob: Codable, Sendable {
  // MARK: A few calls on files

  /// Makes an empty file.
  case touch(_ directory: String, _ name: String)
  /// Writes a new file in the directory, syncs it and renames it over the named file.
  case replace(_ directory: String, _ name: String, _ text: String)
  /// Prints the names in the directory, a line each, in order.
  case list(_ directory: String)
  /// Prints the numbers of the descriptors that the process started with.
  case descriptors
  /// Starts the peer once more, for the given job.
  case respawn(PeerJob)
  /// Runs a shell that copies its input and adds a line, between pipes and between files of the
  /// directory, in a process that may have closed its standard streams.
  case filterBare(_ directory: String)
  /// Makes a directory on a second thread; the first one waits.
  case bystander(_ directory: String, _ name: String)
  /// Takes both kinds of lock on a file and keeps them.
  case hold(_ directory: String, _ name: String)
  /// Takes a shared presence lock on a file that it only reads, and keeps it.
  case share(_ directory: String, _ name: String)
  /// Takes the flock of a file that it only reads, and keeps it.
  case flock(_ directory: String, _ name: String)
  /// Prints a line when it is running, and waits for a minute.
  case linger
  /// Opens a file below a directory, first with no descriptor left, and prints both results.
  case openBeneath(_ directory: String, _ path: String)

  // MARK: Containers, which are made if need be

  /// Opens it.
  case open(_ container: String)
  /// Adds 1 `times` times, and prints the number after each addition.
  case add(
    _ container: String, _ channel: String, times: Int, durability: Durability = .process)
  /// Prints the number in the slot.
  case read(_ container: String, _ channel: String)
  /// Stops itself inside an update.
  case stopInside(_ container: String, _ channel: String)
  /// Subtracts 1 from one number and adds 1 to another, in one update.
  ///
  /// The peer prints the code of the error, or `done`.
  case move(_ container: String, from: String, to: String)
  /// Stops itself while it holds a named lock, and says afterwards whether it was superseded.
  case holdLock(_ container: String, _ name: String)
  /// The same with a lock of the program's own.
  case holdNamedLock(_ container: String, _ name: String)
  /// Adds 1 as often as it can between two moments of the monotonic clock.
  ///
  /// Each sum goes to the log as soon as it is known, a line each. At the end the job prints the
  /// number of sums, and how many nanoseconds the longest addition took.
  case addBetween(
    _ container: String, _ channel: String, log: String, start: Int64, end: Int64)
  /// Takes the lock, forks as a library might, prints the child's process ID, and waits.
  case forkInside(_ container: String, _ channel: String)
  /// Takes the lock, starts a program that waits, prints its process ID, and waits.
  case spawnInside(_ container: String, _ channel: String)
  /// Adds 1 `times` times, and prints after each change the new number, and when the change began
  /// and ended.
  case acknowledge(_ container: String, _ channel: String, durability: Durability, times: Int)
  /// Adds 1 `times` times, saves the number, and adds 1 once more.
  case addSaved(_ container: String, _ channel: String, times: Int)
  /// Prints each number that it reads when notified, until it reads the number `until`, and whether
  /// the kernel notifies it or it polls.
  case watch(_ container: String, _ channel: String, until: Int)
  /// Watches `count` channels, each named by a number, prints how many descriptors are open then,
  /// and ends when three channels have another value.
  case watchMany(_ container: String, count: Int)
  /// Prints which channels appear and disappear, until the channel `until` appears.
  case names(_ container: String, until: String)
  /// Opens, lists, reads, and adds, and prints the result of each step.
  case probe(_ container: String, _ channel: String)
  /// Increments marks as often as it can until the file `end` exists, and writes to the log, a line
  /// each, the name of the count and the number reached.
  case mark(_ container: String, _ channel: String, log: String, end: String)
  /// Removes the channel, and prints each time whether the channel existed, and before the removal
  /// which mark is cleared.
  case remove(_ container: String, _ channel: String, times: Int)

  // MARK: Channels, through the module that users import

  /// Adds 1 `times` times.
  case count(_ container: String, _ channel: String, times: Int)
  /// Adds 1 again and again, and prints a line for each addition.
  case countAloud(_ container: String, _ channel: String)
  /// Puts the numbers in their order.
  case put(_ container: String, _ channel: String, _ numbers: ClosedRange<Int>)
  /// Puts a number in the container of a group.
  case putInGroup(_ group: String, _ channel: String, _ number: Int)
  /// Stops itself inside an update that adds 1.
  case stopUpdating(_ container: String, _ channel: String)
  /// Posts a notice.
  case post(_ container: String, _ notice: String)
  /// Sets `count` keys to their number.
  case set(_ container: String, _ suite: String, prefix: String, count: Int)

  /// Makes a file in each directory of the container of a group of users, and is killed.
  case furnish(_ group: String)
  /// Does one operation of each kind on the container, and prints the result of each.
  case tryEverything(_ group: String)

  // MARK: Members

  /// Joins and leaves, and prints a line for each.
  case join(_ container: String, _ name: String)
  /// Joins, prints its incarnation, and stays.
  case be(_ container: String, _ name: String, info: [String: String] = [:])
  /// Joins, forks, prints the child's process ID, and stays.
  case beForked(_ container: String, _ name: String)
  /// Joins, starts a program that stays, prints its process ID, and stays too.
  case beSpawned(_ container: String, _ name: String)
  /// Joins, forks, prints the child's process ID, leaves once the file exists, and stays.
  case leaveForked(_ container: String, _ name: String, once: String)
  /// Joins, and leaves once the file is there.
  ///
  /// While it joins and while it leaves, another thread forks children and prints their process
  /// IDs.
  case forkWhileJoining(_ container: String, _ name: String, leaveOnce: String)
  /// In each round all processes try to join at once. Prints the rounds in which this process
  /// joined.
  case joinInTurns(_ container: String, _ name: String, processes: Int, rounds: Int)
  /// Joins under `count` names, prints how many joins succeeded and the error that prevented more,
  /// and leaves.
  case joinMany(_ container: String, count: Int)
  /// Prints how the member can be reached.
  case ask(_ container: String, _ name: String)
  /// Prints how the member can be reached, and each change; prints its log to standard error.
  case watchMember(_ container: String, _ name: String)
  /// Starts one subscription of each kind and stops it, over and over, and prints what the process
  /// uses before and after: kilobytes, descriptors and threads.
  case beginAndStop(_ container: String, rounds: Int)

  // MARK: Forked children

  /// Opens a guarded file and an unguarded file. Forks a child, and makes a copy of a copy that has
  /// another file under the guarded number. Prints the process ID of the child, the numbers of the
  /// files, and the process ID of the copy's copy.
  case guardForks(_ directory: String, _ name: String)
  /// Opens guarded files until an open fails, prints the reason, closes the files, and opens one
  /// more.
  case guardMany(_ directory: String, _ name: String)
  /// Prints generated names of its own, then of a child by fork, then of a child by a bare clone,
  /// and then its own again, a line each.
  case nameCopies
  /// Has a child use its inherited objects, and prints the results.
  case inherit(_ directory: String, by: Copying)
  /// Catches its signals, and prints what signals do in a child, in itself, and afterwards.
  case catchSignals
  /// Catches a signal, forks a child that catches another signal, and one that catches the same
  /// signal for a time. Sends both children the signal afterwards, and prints what it has done.
  case catchInCopies
  /// Sends itself a signal while it fails to catch the signal together with another one, and prints
  /// a line if it survives.
  case refuseSignals
  /// Sends itself a signal after a catch, and prints how often its own handler had the signal: the
  /// handler calls that of the catch, or the process has put the latter back.
  case handleSignal(isChained: Bool)
  /// Forks children in sequence while the process is busy. Each child tries to use its inherited
  /// objects, drops them, and opens the container again.
  ///
  /// Then the job forks one more child that only drops the objects and stays, prints its process
  /// ID, and stays.
  case forkBusy(_ container: String, copies: Int)

  // MARK: Messages and files

  /// Sends the numbers, `batch` in a call, and prints after each call the last number sent.
  ///
  /// - Parameters:
  ///   - waits: whether the sender waits for space in the queue.
  ///   - isNamed: the messages have ids.
  case send(
    _ container: String, from: String, to: String, _ numbers: Range<Int>, batch: Int = 1,
    durability: Durability = .process, waits: Bool = false, isNamed: Bool = false)
  /// Writes a line for each message: the number, the attempt and whether the message is marked.
  /// Then acknowledges the message and writes another line; ends after the last message.
  ///
  /// The poison message kills the process. Errors in its log go to standard error.
  case receive(_ container: String, _ name: String, log: String, until: Int, poison: Int? = nil)
  /// Works on a queue, several messages at a time, and notes each delivery and acknowledgement in
  /// the log; kills or suspends itself in the handler of a number; ends in order after so many
  /// messages. Each handler takes `rest` milliseconds.
  case work(
    _ container: String, _ queue: String, log: String, concurrency: Int = 2, deadline: Int,
    killsAt: Int? = nil, stopsAt: Int? = nil, times: Int = .max, rest: Int = 0)
  /// Receives one message after the other and refuses each, until no message is claimed or waiting.
  case refuse(_ container: String, _ name: String, attempts: Int)
  /// Cancels the pending messages, and prints which messages it could cancel.
  case cancel(_ container: String, from: String, to: String)
  /// Prints the outcomes of `count` messages.
  case outcomes(_ container: String, _ name: String, count: Int)
  /// Receives `count` messages, prints for how many nanoseconds processors worked on them, and the
  /// most memory that the process used, in KiB.
  case drain(_ container: String, _ name: String, count: Int)
  /// Sends the numbers from 1 on, each again until it is sent, and after each attempt one message
  /// to `other`, until the file exists.
  ///
  /// Prints each number that is sent, and the reason when a number is not sent.
  case insist(_ container: String, from: String, to: String, other: String, until: String)
  /// Sends `watch` a message of the id `n` and forks in the middle of the call. Prints the child's
  /// process ID, receives the message, and prints the result of sending the message once more.
  case sendForked(_ container: String)
  /// Sends a file to `watch` without joining, and prints a line for it.
  case sendFile(_ container: String, _ file: String, moves: Bool, durability: Durability)
  /// Joins as `watch`, moves one file to a path if `takes` is set, acknowledges it, prints a line,
  /// and leaves.
  case receiveFile(_ container: String, to: String, takes: Bool)
  /// Sends itself a file, receives it, moves it if a path is given, and prints by how many
  /// kilobytes its peak memory has grown.
  case fileMemory(_ container: String, _ file: String, to: String? = nil)

  /// Carries messages for the members, which are in the second container, from the first one to
  /// the second, and outcomes back, until the test kills it.
  ///
  /// - Parameter channels: the channels of the second container that have copies in the first one.
  case carry(_ here: String, _ there: String, members: [String], channels: [String] = [])
  /// Carries between a container and those of other machines, over a server, until the bridge ends
  /// or the test kills it; prints a line when it carries.
  case bridge(_ container: String, group: String, address: String, tokenFile: String)

  // MARK: Requests and waking

  /// Joins, prints its incarnation, and replies to each number with its double; prints each request
  /// when it starts to handle it.
  case respond(_ container: String, _ name: String, _ manner: Responding = .plainly)
  /// Joins, prints a line, replies to one request with its double, leaves, and prints a line;
  /// leaves without a reply if no request arrives in three seconds.
  case respondOnce(_ container: String, _ name: String)
  /// Joins, prints its incarnation, and prints each immediate message.
  case hear(_ container: String, _ name: String)
  /// Joins and leaves `times` times, and prints each immediate message with the incarnation that
  /// has received it.
  case hearOften(_ container: String, _ name: String, times: Int)
  /// Requests all the numbers, one after the other, and checks that each reply is the number's
  /// double; as a member of the given name, or as a guest.
  case request(
    _ container: String, of: String, _ numbers: ClosedRange<Int>, as: String? = nil,
    milliseconds: Int = 30_000)
  /// Sends a number under a name that it has not joined under, and prints a line.
  case sendAs(_ container: String, from: String, to: String, _ number: Int)
  /// Wakes a member, prints the result, and stays if `stays` is set.
  case wake(_ container: String, _ name: String, milliseconds: Int, stays: Bool = false)
  /// The program that is started to wake a member: adds a line to the file with its inherited
  /// descriptors, directory and environment, joins, and stays as long as the file exists.
  case awaken(_ file: String, _ name: String, _ manner: Awakening = .properly)

  // MARK: Coordination; WORMHOLE_ROOT names the root of the groups

  /// Prints `inside`, does the given work, and prints the result.
  case coordinate(
    _ kind: Coordination, _ path: String, Inside, takeOverAfterMilliseconds: Int? = nil)
  /// Moves a file in an access, and notifies the presenters of the file.
  case moveInside(_ path: String, to: String)
  /// Adds 1 to the number in a file, as plain code does it.
  case coordinateAdd(_ path: String, times: Int)
  /// Presents a file, and prints the requests and notices that it receives.
  case present(_ path: String, Presenting)
  /// Presents the first files without a reply to any request, and then another file with replies.
  case presentAmong(_ hung: [String], _ path: String)
  /// Presents a file while it adds 1 to the file's number `times` times, and saves a part only on
  /// request of other processes. Prints each number that it shows, and a line after the last
  /// addition.
  case presentAndAdd(_ path: String, times: Int)

  // MARK: What a hostile member of a group may do

  /// Renames a file or directory inside a directory.
  case rename(_ directory: String, _ name: String, to: String)
  /// Makes a file of these bytes that the whole group may read and write.
  case plant(_ directory: String, _ name: String, [UInt8])
  /// Makes a directory.
  case plantDirectory(_ directory: String, _ name: String)
  /// Makes a symbolic link.
  case plantLink(_ directory: String, _ name: String, to: String)
  // MARK: Limits

  /// Makes each blocking call once, while the process may have few descriptors or threads; prints
  /// the duration and the result of each call.
  ///
  /// - Parameter isReady: whether the process has joined before, and the limit counts only objects
  ///   that are added afterwards.
  case callLimited(_ container: String, Limit, isReady: Bool)
  /// The same for calls with `await`, with few descriptors.
  ///
  /// - Parameter isReady: whether tasks have run before, and the limit counts only objects that are
  ///   added afterwards.
  case awaitLimited(_ container: String, descriptors: Int, isReady: Bool)
  /// Joins, begins to receive messages, contexts and outcomes on a queue of its own, each while no
  /// descriptors are free, and prints each result.
  case listenOnQueue(_ container: String)
  /// Makes calls on a queue of its own while no descriptors are free, and prints the numbers of the
  /// calls in their order.
  case callOnQueue
  /// Opens the container again `times` times, each time for one change; prints the number of
  /// threads before, afterwards, and a while later.
  case openAgain(_ container: String, times: Int)
  /// Sends messages, or requests, of a kind that is too long, of a kind with a zero byte, and of
  /// the usual kind, and prints the results of the requests.
  case sendOddKinds(_ container: String, to: String, asks: Bool)
  /// Fails to start a thread, prints whether the error is that of too many threads, and ends by a
  /// signal that it sends to itself; ends with code 77 where no thread can be refused.
  case endAfterRefusedThread
  /// Joins, keeps all threads of the library busy, and prints the duration of a request that gets
  /// no reply within a fifth of a second.
  case requestWhileBusy(_ container: String, of: String)

  // MARK: Others

  /// Does a job as the given user and group. Only root can; for other users the job ends with code
  /// 77.
  case `as`(user: UInt32, group: UInt32, PeerJob)
  /// Runs a command in a sandbox that refuses `openat2` and `renameat2` with an error, and ends
  /// with the command's status; with code 77 where no sandbox is available.
  case sandboxed(error: Int32, [String])
  /// Prints the problems that the doctor finds in a container, a line each.
  case diagnose(_ container: String)
  /// Prints each number that it receives as a message, and replies to each request with the next
  /// number, in the container and over the link that the environment names.
  case linked(_ name: String)
  /// Prints a line as many times with the standard library's `print`, and kills itself or stays.
  case print(_ line: String, times: Int, killsItself: Bool)
  /// Encodes a dictionary with so many keys again and again, and prints by how many kilobytes its
  /// peak memory has grown.
  case encodeOften(keys: Int, times: Int)
  /// Starts as a test does, and prints the directory of a group, here and in a child process.
  case testGroups(_ group: String)
}

extension PeerJob {
  package enum Copying: String, Codable, Sendable { case fork, clone, unwiped }

  /// How a process replies to requests.
  package enum Responding: String, Codable, Sendable {
    case plainly
    /// Prints nothing about requests.
    case quietly
    /// Stops itself before the first reply.
    case stopping
    /// Kills itself at a request.
    case dying
    /// Never replies.
    case never
  }

  /// The behaviour of a program that was started to wake a member.
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
    /// Replies to each number with its double.
    case answering
  }

  package enum Limit: Codable, Sendable {
    case descriptors(Int)
    case threads(Int)
  }

  package enum Coordination: String, Codable, Sendable { case read, write, replace }

  /// The behaviour of a presenter when it is asked.
  package enum Presenting: Codable, Sendable {
    case plainly
    /// The presenter is only notified of changes.
    case listening
    /// Does nothing until the file exists.
    case hang(until: String)
    /// Writes the text to the file, and prints a line.
    case save(String)
  }

  /// The work of a process inside an access.
  package enum Inside: Codable, Sendable {
    case nothing
    /// Stops itself, and writes `late` to the file afterwards, unless the access only reads.
    case stop
    /// Stays for a minute.
    case linger
    case write(String)
  }
}

extension PeerJob {
  /// The job as an argument on the peer's command line.
  package var arguments: [String] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    do {
      return [String(decoding: try encoder.encode(self), as: UTF8.self)]
    } catch {
      preconditionFailure("a job cannot be said: \(error)")
    }
  }

  /// Decodes the job from a command line.
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
) throws -> ProcessOutcome {
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
