/**
 * Reads an agent's YAML file: the whole of it, or every problem with its place. See docs/organizations.md, "Agents".
 */
import { readFileSync, statSync } from 'node:fs'
import { type AgentFile, agentFile } from '../../../schemas/accounts/agent.ts'
import { problemsOf } from '../../config/issues.ts'
import { type Problem, printProblem } from '../../config/problem.ts'
import { readSource } from '../../config/source.ts'

/** A persona of the greatest length, in any script, and all else that there may be. */
const MAX_AGENT_FILE_BYTES = 256 * 1024
/** Problems of the file as a whole name its first line. */
const START = { line: 1, column: 1, field: '' } as const

/** The file cannot be used. */
class AgentFileProblems extends Error {
  constructor(problems: readonly Problem[]) {
    super(['The agent file has problems:', ...problems.map(printProblem)].join('\n'))
    this.name = 'AgentFileProblems'
  }
}

function textOf(path: string): string {
  const refuse = (message: string) => new AgentFileProblems([{ file: path, ...START, message }])
  let text: string
  try {
    if (statSync(path).size > MAX_AGENT_FILE_BYTES) throw refuse(`It is over ${MAX_AGENT_FILE_BYTES} bytes.`)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof AgentFileProblems) throw error
    const { code, message } = error as NodeJS.ErrnoException
    throw refuse(code === 'ENOENT' ? 'There is no such file.' : `It cannot be read: ${message}.`)
  }
  if (text.trim() === '') throw refuse('The file is empty.')
  return text
}

/** @throws AgentFileProblems */
export function readAgentFile(path: string): AgentFile {
  const source = readSource(textOf(path), path, null)
  if (source.problems.length > 0) throw new AgentFileProblems(source.problems)
  const parsed = agentFile.safeParse(source.value)
  if (parsed.success) return parsed.data
  const problems = problemsOf(parsed.error.issues, agentFile, source)
  throw new AgentFileProblems(problems.sort((a, b) => a.line - b.line || a.column - b.column))
}
