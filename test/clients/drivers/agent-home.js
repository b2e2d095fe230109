/** What drivers of coding agents share: a home with settings, tools beyond the agent's own, and a task. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Agents have so many tools of their own; more are served over MCP. */
const MOST_OWN_TOOLS = 4
export const SERVER_NAME = 'many'
export const hasServer = (tools) => tools > MOST_OWN_TOOLS
export const toolsServer = (tools) => ({
  command: process.execPath,
  args: [join(import.meta.dirname, 'tools-server.js'), String(tools)],
})
export const PICTURE = 'picture.png'
/** What a task leaves. */
export const RESULT = { name: 'result.txt', content: 'all green' }
/** So many that the answer is in its middle. */
const EVENT_BYTES_PER_CHARACTER = 30

const mergeInto = (into, from) => {
  for (const [name, value] of Object.entries(from))
    into[name] = value?.constructor === Object ? mergeInto(into[name] ?? {}, value) : value
  return into
}

/** Makes a home folder with the settings, and `work` in it, with the picture. */
export function makeHome({ files, image }) {
  const path = mkdtempSync(join(tmpdir(), 'tollgate-agent-'))
  const work = join(path, 'work')
  mkdirSync(work)
  const write = (name, content) => {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), content)
  }
  for (const [name, content] of Object.entries(files)) write(name, content)
  if (image !== null) write(`work/${PICTURE}`, Buffer.from(image.split(',')[1], 'base64'))
  return {
    path,
    work,
    write,
    append: (name, content) => appendFileSync(join(path, name), content),
    merge: (name, fields) =>
      write(name, JSON.stringify(mergeInto(JSON.parse(readFileSync(join(path, name), 'utf8')), fields))),
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }),
  }
}

/** Returns whether the client that is to leave has read enough. */
export async function hasReadEnough({ baseUrl, leaveAfterCharacters }) {
  const passed = await (await fetch(`${baseUrl}/-/passed`)).text()
  return Number(passed) >= leaveAfterCharacters * EVENT_BYTES_PER_CHARACTER
}

export function readResult(work) {
  const path = join(work, RESULT.name)
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : null
}

const direct = (name, value) => `[simulate: ${name}=${encodeURIComponent(value).replaceAll("'", '%27')}]`
const callTools = (...calls) => direct('calls', JSON.stringify(calls))

/**
 * Returns the prompt of a task. Each result of a tool tells the model its next step: it runs a command, reads a file, writes
 * one while it runs another command, looks at the result, and says that it is done. Without tools it answers with the file.
 */
export function writeTask(calls, work) {
  if (calls === undefined)
    return `Make it green. ${direct('text', `${RESULT.name}\n\`\`\`\n${RESULT.content}\n\`\`\`\n`)}`
  const { shell, read, write } = calls
  const at = (name) => join(work, name)
  const print = (words) => `echo '${words}'`
  const writes = write ?? ((file, content) => shell(`${print(content)} > ${file}`))
  const reads = read ?? ((file) => shell(`cat ${file}`))
  const done = direct('text', 'The task is done.')
  const look = callTools(shell(`cat ${at(RESULT.name)} && ${print(done)}`))
  const change = callTools(writes(at(RESULT.name), RESULT.content), shell(print(look)))
  const plan = callTools(reads(at('plan.txt')))
  return `Make it green. ${callTools(shell(`${print(plan)}; ${print(change)} > ${at('plan.txt')}`))}`
}
