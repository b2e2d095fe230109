/**
 * A plugin of Stryker that runs test files of tap in one process, again for each mutant, and of their tests only those that
 * reach it. To start a process for each mutant takes longer than the tests.
 */
import { relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import type { Test } from 'tap'

/** What instrumented files share with their runner. */
interface Switches {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  mutantCoverage?: object
  hitCount?: number | undefined
  hitLimit?: number | undefined
}

interface MutantRun {
  readonly activeMutant: { readonly id: string }
  readonly testFilter?: readonly string[]
  readonly hitLimit?: number
}

interface TestResult {
  readonly id: string
  readonly name: string
  readonly fileName: string
  readonly timeSpentMs: number
  readonly status: number
  readonly failureMessage: string
}

interface TapInProcessOptions {
  readonly files: readonly string[]
  /** Modules keep something from run to run. */
  readonly hasState: boolean
  /** The longest that a test within another may take. */
  readonly testMs: number
}

type Body = (t: Test) => unknown

// Tap tells its parent process of its time limit, and Stryker takes no messages but its own.
const { send } = process
process.send = undefined
const { default: t } = await import('tap')
process.send = send

/** What a property has not found by then, the tables beside it have to. */
const PROPERTY_MS = 300
/** On a busy machine a property may run out of time before its first case: that is no failure. */
const NOTHING_TRIED = /^(Error: )?Property interrupted after 0 tests/
// That a test fails is enough: to find its smallest case takes long.
fc.configureGlobal({
  ...fc.readConfigureGlobal(),
  endOnFailure: true,
  interruptAfterTimeLimit: PROPERTY_MS,
})

const SUCCESS = 0
const FAILED = 1
const BETWEEN = ' > '

const shared = globalThis as { __stryker__?: Switches }
shared.__stryker__ ??= {}
const switches = shared.__stryker__

class TapInProcess {
  static inject = ['options']
  readonly #files: readonly string[]
  readonly #hasState: boolean
  readonly #testMs: number
  /** The tests that each file has, once it is loaded. */
  readonly #tests = new Map<string, Parameters<Test['test']>[]>()
  #runs = 0

  constructor({ tapInProcess: { files, hasState, testMs } }: { tapInProcess: TapInProcessOptions }) {
    this.#files = files
    this.#hasState = hasState
    this.#testMs = testMs
    // The lines of TAP would fill a pipe that nobody reads.
    process.stdout.write = () => true
  }

  /** Loaded modules stay loaded: a mutant of what happens while they load gets a new process. */
  capabilities() {
    return { reloadEnvironment: false }
  }

  async dryRun() {
    const tests = await this.#run(undefined, false)
    return { status: 'complete', tests, mutantCoverage: switches.mutantCoverage }
  }

  /**
   * What modules keep from run to run may make a test fail that would pass, and pass that would fail. So where they keep
   * anything, a mutant that a used process does not notice, and one of which a test fails without it too, are tried again in a
   * new process.
   */
  async mutantRun({ activeMutant, testFilter, hitLimit }: MutantRun) {
    const isNew = this.#runs === 0
    switches.activeMutant = activeMutant.id
    switches.hitCount = hitLimit === undefined ? undefined : 0
    switches.hitLimit = hitLimit
    const tests = await this.#run(testFilter, true)
    switches.activeMutant = undefined
    if (hitLimit !== undefined && switches.hitCount! > hitLimit)
      return { status: 'timeout', reason: 'a loop has no end' }
    const failed = tests.filter(({ status }) => status === FAILED)
    const isCertain =
      isNew || !this.#hasState || (failed.length > 0 && (await this.#passWithoutMutant(failed)))
    // Stryker begins a new process, and tries once more.
    if (!isCertain) throw new Error('the process is used')
    if (failed.length === 0) return { status: 'survived', nrOfTests: tests.length }
    return {
      status: 'killed',
      killedBy: failed.map(({ id }) => id),
      failureMessage: failed[0]!.failureMessage,
      nrOfTests: tests.length,
    }
  }

  async #passWithoutMutant(failed: readonly TestResult[]): Promise<boolean> {
    switches.hitLimit = undefined
    const ids = failed.map(({ id }) => id)
    const control = await this.#run(ids, true)
    return control.length > 0 && control.every(({ status }) => status === SUCCESS)
  }

  /** Runs the tests whose ids are named, those around them, and those within them. */
  async #run(wanted: readonly string[] | undefined, untilFailure: boolean): Promise<TestResult[]> {
    this.#runs += 1
    const results: TestResult[] = []
    const running = new Set<Test>()
    const isWanted = (id: string) =>
      wanted?.some((one) => one === id || one.startsWith(id + BETWEEN) || id.startsWith(one + BETWEEN)) ??
      true
    const hasFailed = () => [...running].some((test) => !test.passing())
    const wrap = (test: Test, id: string, fileName: string) => {
      const own = test.test
      running.add(test)
      // The types of tap are overloads of what is given through.
      test.test = ((name: string, ...rest: [...unknown[], Body]) => {
        const innerId = id + BETWEEN + name
        if (!isWanted(innerId) || (untilFailure && hasFailed())) return Promise.resolve()
        const body = rest.pop() as Body
        const run = async (inner: Test) => {
          const startedAt = performance.now()
          switches.currentTestId = innerId
          wrap(inner, innerId, fileName)
          if (untilFailure && id !== fileName) inner.setTimeout(this.#testMs)
          let failure: unknown
          inner.on('end', () => {
            running.delete(inner)
            // Its first test begins while the body of a test still runs, so only the end of a test says whose turn it is.
            switches.currentTestId = id === fileName ? undefined : id
            results.push({
              id: innerId,
              name: innerId,
              fileName,
              timeSpentMs: performance.now() - startedAt,
              status: inner.passing() ? SUCCESS : FAILED,
              failureMessage: String(failure ?? 'an assertion failed'),
            })
          })
          try {
            return await body(inner)
          } catch (error) {
            if (NOTHING_TRIED.test(String(error))) return
            failure = error
            throw error
          }
        }
        return (own as (...given: unknown[]) => unknown)(name, ...rest, run)
      }) as unknown as Test['test']
    }
    const begin = t.test.bind(t) as Test['test']
    for (const file of this.#files) {
      if (!isWanted(file) || (untilFailure && results.some(({ status }) => status === FAILED))) continue
      await begin(file, async (test) => {
        wrap(test, file, file)
        const startedAt = performance.now()
        try {
          await this.#runFile(file, test)
        } catch (error) {
          const timeSpentMs = performance.now() - startedAt
          const failureMessage = String(error)
          results.push({ id: file, name: file, fileName: file, timeSpentMs, status: FAILED, failureMessage })
        }
        test.on('end', () => running.delete(test))
      })
    }
    return results
  }

  /** Loads a file, or runs again the tests that it had: where modules keep nothing, neither do test files. */
  async #runFile(file: string, test: Test): Promise<void> {
    const known = this.#hasState ? undefined : this.#tests.get(file)
    if (known !== undefined) {
      for (const given of known) void test.test(...given)
      return
    }
    const tests: Parameters<Test['test']>[] = []
    const { test: own, teardown, beforeEach, setTimeout } = t
    const ofRoot = { test: own, teardown, beforeEach, setTimeout }
    const note = (...given: Parameters<Test['test']>) => {
      tests.push(given)
      return test.test(...given)
    }
    Object.assign(t, {
      test: note,
      teardown: test.teardown.bind(test),
      beforeEach: test.beforeEach.bind(test),
      setTimeout: test.setTimeout.bind(test),
    })
    try {
      await import(`${pathToFileURL(resolve(file))}?run=${this.#runs}`)
      this.#tests.set(file, tests)
    } finally {
      Object.assign(t, ofRoot)
    }
  }
}

interface TestedMutant {
  readonly fileName: string
  readonly status: string
  readonly replacement: string
  readonly location: { readonly start: { readonly line: number; readonly column: number } }
}

/** Says where a mutant survives as soon as it does: a run takes long. */
class SurvivorReporter {
  onMutantTested({ fileName, status, replacement, location: { start } }: TestedMutant): void {
    if (status !== 'Survived' && status !== 'NoCoverage' && status !== 'Timeout') return
    const place = `${relative(process.cwd(), fileName)}:${start.line}:${start.column + 1}`
    process.stdout.write(
      `${status.toLowerCase()}  ${place}  →  ${replacement.replace(/\s+/g, ' ').slice(0, 60)}\n`,
    )
  }
}

export const strykerPlugins = [
  { kind: 'TestRunner', name: 'tap-in-process', injectableClass: TapInProcess },
  { kind: 'Reporter', name: 'survivors', injectableClass: SurvivorReporter },
]
