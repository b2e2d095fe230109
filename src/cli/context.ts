import { type Command, Option } from 'commander'
import { type Json, type JsonObject, printJson, printRecord, printTable } from './output.ts'
import type { Wiring } from './wiring.ts'

export const INVOCATION = 'npm run -s tollgate --'

/** Where answers and errors go. */
export interface Output {
  answer(text: string): void
  error(text: string): void
  /** Answers go to a terminal that shows colours, and nobody asked for none. */
  readonly isColoured: boolean
}

/** What a command needs beside its own arguments. */
export interface Context {
  readonly wiring: Wiring
  readonly output: Output
  /** The command was understood and done, and its answer is no: exit code 1. */
  isNegativeAnswer(): void
}

/** An answer in both forms; the text is made on demand. */
export interface Answer {
  readonly json: Json
  text(): string
}

/** One thing, a field a line; `shown` where a reader sees it otherwise. */
export const answerRecord = (json: JsonObject, shown: JsonObject = json): Answer => ({
  json,
  text: () => printRecord(shown),
})

/** Things in a table of these fields; `shown` where a reader sees them otherwise. */
export const answerTable = (
  json: readonly JsonObject[],
  fields: readonly string[],
  shown: readonly JsonObject[] = json,
): Answer => ({ json, text: () => printTable(shown, fields) })

/**
 * Makes `work` the action of a command that has its description and options already: adds `--json` and the
 * example, and prints the answer. `work` gets the arguments in order, then the options.
 */
export function answers<Given extends unknown[]>(
  { output }: Context,
  command: Command,
  example: string,
  work: (...given: Given) => Promise<Answer>,
): void {
  command
    .addOption(new Option('--json', 'print one JSON value'))
    .addHelpText('after', `\nExample:\n  ${INVOCATION} ${example}`)
    .action(async (...given: unknown[]) => {
      // After arguments and options commander gives the command itself.
      const answer = await work(...(given.slice(0, -1) as Given))
      const { json } = command.opts<{ json?: boolean }>()
      output.answer(json ? printJson(answer.json) : answer.text())
    })
}
