import { deepEqual } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { configFile } from '../../../schemas/config/file.ts'
import { buildProgram, run } from '../../../src/cli/program.ts'
import type { Wiring } from '../../../src/cli/wiring.ts'
import type { Database } from '../../../src/postgres/database.ts'
import { BOUND_MS } from '../../support/eventually.ts'

export const ENTRY = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** One command line in a process of its own; nothing of this process's environment but PATH reaches it. */
export function tollgate(words: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [ENTRY, ...words], {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: BOUND_MS,
      killSignal: 'SIGKILL',
    })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => {
        output[name] += text
      })
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, ...output }))
  })
}

/** Runs a command that must succeed, and returns its answer. */
export async function answerOf(words: readonly string[], env: Record<string, string>) {
  const { code, stdout, stderr } = await tollgate([...words, '--json'], env)
  if (code !== 0) throw new Error(`tollgate ${words.join(' ')} ended with ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

const never = () => {
  throw new Error('this test calls no such command')
}

/** For a command that must end before it needs an engine. */
export const noEngines: Wiring = {
  env: {},
  serve: never,
  settings: never,
  database: never,
  books: never,
  store: never,
  nats: never,
  upstreams: never,
  tasks: never,
  close: async () => {},
  withServiceDatabase: never,
  rebuildLog: never,
  loadConfig: never,
  channels: never,
  processReports: never,
  openProvider: async () => null,
  actor: () => 'operator:test',
  publicUrl: () => 'https://gateway.example',
  ask: never,
  untilStopped: never,
}

/** Commands on this database, with this configuration where they read one. */
export const wiringOn = (database: Database, config?: object, more: Partial<Wiring> = {}): Wiring => ({
  ...noEngines,
  database: async () => database,
  ...(config && {
    loadConfig: () => ({
      file: 'tollgate.yaml',
      config: configFile.parse(config),
      problems: [],
      warnings: [],
    }),
  }),
  ...more,
})

/** The same command line in this process: many commands in the time that one process takes to start. */
export async function command(
  words: readonly string[],
  wiring: Wiring,
  isColoured = false,
): Promise<Outcome> {
  let [stdout, stderr] = ['', '']
  const code = await run(words, wiring, {
    answer: (text) => {
      stdout += text
    },
    error: (text) => {
      stderr += text
    },
    isColoured,
  })
  return { code, stdout, stderr }
}

/** Commands that must succeed, or must be refused. */
export function commandsOn(wiring: Wiring) {
  return {
    async json(...words: string[]) {
      const { code, stdout, stderr } = await command([...words, '--json'], wiring)
      deepEqual({ code, stderr }, { code: 0, stderr: '' })
      return JSON.parse(stdout)
    },
    async refused(...words: string[]): Promise<string> {
      const { code, stdout, stderr } = await command([...words, '--json'], wiring)
      deepEqual({ code, stdout }, { code: 1, stdout: '' })
      return stderr
    },
    async text(...words: string[]): Promise<string> {
      const { code, stdout, stderr } = await command(words, wiring)
      deepEqual({ code, stderr }, { code: 0, stderr: '' })
      return stdout
    },
  }
}

type Command = ReturnType<typeof buildProgram>['commands'][number]

/** A command that does something, and the words that name it. */
export interface NamedCommand {
  readonly words: readonly string[]
  readonly command: Command
}

/** Returns the whole tree of commands, without groups. */
export function commandTree(): NamedCommand[] {
  const output = { answer: never, error: never, isColoured: false }
  const below = (command: Command, words: readonly string[]): NamedCommand[] =>
    command.commands.length === 0
      ? [{ words, command }]
      : command.commands.flatMap((next) => below(next, [...words, next.name()]))
  return below(buildProgram({ wiring: noEngines, output, isNegativeAnswer: never }, never), [])
}
