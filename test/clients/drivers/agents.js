/**
 * Runs coding agents without their screens: each gets the settings that `tollgate connect` writes, in a separate home, and the
 * prompt on stdin. What it prints is its turn; the tools that the model calls are the agent's own.
 */
import { spawn } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  hasReadEnough,
  hasServer,
  makeHome,
  PICTURE,
  RESULT,
  readResult,
  SERVER_NAME,
  toolsServer,
  writeTask,
} from './agent-home.js'
import { CASE_BOUND_SECONDS, drive } from './driver.js'

const LEAVE_INTERVAL_MS = 100
const MOST_LEAVING_MS = 5_000
const BIN = join(import.meta.dirname, '../node_modules/.bin')
const { PATH, PYTHONPATH, TMPDIR } = process.env
const KEPT_ENV = { PATH: `${BIN}${delimiter}${PATH}`, TMPDIR, ...(PYTHONPATH && { PYTHONPATH }) }
/** Returns the last words that a program wrote to stderr, without its stack and the paths of this machine. */
const readComplaint = (text) =>
  text
    .replace(/\(?(?:file:\/\/)?\/\S+\/node_modules\/\S+/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^\s+at\b/.test(line))
    .slice(-3)
    .join(' ')
    .slice(-400)

const withPicture = (words) => `@${PICTURE} ${words}`

/**
 * How each is run. `next` makes it go on with its last conversation, `attach` shows it the picture, `serve` adds tools of a
 * server, `calls` are its tools for the steps of a task.
 */
const AGENTS = {
  '@anthropic-ai/claude-code': {
    command: ({ tools }) => [
      ...['claude', '-p', '--allowedTools', 'Bash,Read,Write'],
      ...(hasServer(tools) ? ['--mcp-config', 'tools.json'] : []),
    ],
    next: ['--continue'],
    attach: { words: withPicture },
    serve: ({ write }, server) =>
      write('work/tools.json', JSON.stringify({ mcpServers: { [SERVER_NAME]: server } })),
    calls: {
      shell: (command) => ['Bash', { command, description: 'One step' }],
      read: (file_path) => ['Read', { file_path }],
      write: (file_path, content) => ['Write', { file_path, content }],
    },
  },
  '@openai/codex': {
    command: () => ['codex', 'exec'],
    next: ['resume', '--last'],
    options: ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'],
    last: ['-'],
    attach: { options: ['--image', PICTURE] },
    serve: ({ append }, { command, args }) =>
      append(
        '.codex/config.toml',
        `\n[mcp_servers.${SERVER_NAME}]\ncommand = "${command}"\nargs = ${JSON.stringify(args)}\n`,
      ),
    calls: { shell: (cmd) => ['exec_command', { cmd }] },
  },
  '@google/gemini-cli': {
    command: () => ['gemini', '--skip-trust', '--yolo'],
    // It would start itself a second time, for more memory.
    env: { GEMINI_CLI_NO_RELAUNCH: 'true' },
    next: ['--resume', 'latest'],
    last: ['-p', ''],
    attach: { words: withPicture },
    serve: ({ merge }, server) => merge('.gemini/settings.json', { mcpServers: { [SERVER_NAME]: server } }),
    calls: {
      shell: (command) => ['run_shell_command', { command }],
      read: (file_path) => ['read_file', { file_path }],
      write: (file_path, content) => ['write_file', { file_path, content }],
    },
  },
  '@qwen-code/qwen-code': {
    command: () => ['qwen', '--yolo'],
    env: { QWEN_CODE_NO_RELAUNCH: 'true' },
    next: ['--continue'],
    attach: {
      words: withPicture,
      setUp: ({ merge }) =>
        merge('.qwen/settings.json', { model: { generationConfig: { modalities: { image: true } } } }),
    },
    serve: ({ merge }, server) => merge('.qwen/settings.json', { mcpServers: { [SERVER_NAME]: server } }),
    calls: {
      shell: (command) => ['run_shell_command', { command, is_background: false }],
      read: (file_path) => ['read_file', { file_path }],
      write: (file_path, content) => ['write_file', { file_path, content }],
    },
  },
  'opencode-ai': {
    command: () => ['opencode', 'run', '--auto', '--title', 'A test'],
    // It waits for its vendor's list of models.
    env: { OPENCODE_DISABLE_MODELS_FETCH: '1' },
    next: ['--continue'],
    attach: {
      options: ['--file', PICTURE],
      setUp({ merge }, { model }) {
        const sees = { attachment: true, modalities: { input: ['text', 'image'], output: ['text'] } }
        merge('.config/opencode/opencode.json', { provider: { tollgate: { models: { [model]: sees } } } })
      },
    },
    serve: ({ merge }, { command, args }) =>
      merge('.config/opencode/opencode.json', {
        mcp: { [SERVER_NAME]: { type: 'local', command: [command, ...args] } },
      }),
    calls: {
      shell: (command) => ['bash', { command, description: 'One step' }],
      read: (filePath) => ['read', { filePath }],
      write: (filePath, content) => ['write', { filePath, content }],
    },
  },
  '@continuedev/cli': {
    command: () => ['cn', '--auto', '-p'],
    next: ['--resume'],
    serve: ({ append }, { command, args }) =>
      append(
        '.continue/config.yaml',
        `mcpServers:\n  - name: ${SERVER_NAME}\n    command: ${command}\n    args: ${JSON.stringify(args)}\n`,
      ),
    calls: {
      shell: (command) => ['Bash', { command }],
      read: (filepath) => ['Read', { filepath }],
      write: (filepath, content) => ['Write', { filepath, content }],
    },
  },
  // It has no tools: it edits the file that it is given as the model's answer says.
  'aider-chat': {
    command: ({ hasTask }) => [
      ...['python3', '-m', 'aider', '--no-git', '--yes-always', '--analytics-disable', '--no-check-update'],
      ...[
        '--no-show-release-notes',
        '--no-show-model-warnings',
        '--no-pretty',
        '--message-file',
        '../prompt.txt',
      ],
      ...(hasTask ? [RESULT.name] : []),
    ],
    next: ['--restore-chat-history'],
    // Without it, it waits for a list of models that another vendor keeps.
    setUp: ({ write }) => write('.aider/caches/model_prices_and_context_window.json', '{"sim": {}}'),
    // Without what it says of itself.
    readAnswer: (printed) =>
      printed
        .split('Repo-map: disabled')
        .at(-1)
        .replaceAll(/^(?:Added |Restored |Tokens:|Applied ).*$/gm, ''),
    attach: {
      options: [PICTURE],
      setUp({ write }, { model }) {
        const sees = { litellm_provider: 'openai', mode: 'chat', supports_vision: true }
        write('.aider.model.metadata.json', JSON.stringify({ [`openai/${model}`]: sees }))
      },
    },
  },
}

const openWith = (_, name) => (given) => {
  const agent = AGENTS[name]
  const home = makeHome(given)
  if (hasServer(given.tools)) agent.serve(home, toolsServer(given.tools))
  agent.setUp?.(home)
  const image = given.image === null ? {} : agent.attach
  image.setUp?.(home, given)
  let prompt = ''
  let turns = 0
  return {
    say(words) {
      prompt = given.hasTask ? writeTask(agent.calls, home.work) : (image.words ?? String)(words)
    },
    async *turn() {
      const { next, options = [], last = [] } = agent
      const [program, ...args] = [
        ...agent.command(given),
        ...(turns++ > 0 ? next : []),
        ...[...options, ...(image.options ?? []), ...last],
      ]
      home.write('prompt.txt', prompt)
      const child = spawn(program, args, {
        cwd: home.work,
        env: { ...KEPT_ENV, HOME: home.path, ...agent.env },
        timeout: CASE_BOUND_SECONDS * 1000,
        killSignal: 'SIGKILL',
      })
      // One that fails at once, or reads the file, reads nothing.
      child.stdin.on('error', () => {})
      child.stdin.end(prompt)
      const ended = Promise.all([
        text(child.stdout),
        text(child.stderr),
        new Promise((resolve) => child.once('exit', resolve)),
      ])
      if (given.leaveAfterCharacters !== null) {
        while (child.exitCode === null && !(await hasReadEnough(given))) await sleep(LEAVE_INTERVAL_MS)
        child.kill('SIGINT')
        setTimeout(() => child.kill('SIGKILL'), MOST_LEAVING_MS).unref()
        yield '.'.repeat(given.leaveAfterCharacters)
      }
      const [printed, complaint, code] = await ended
      if (code !== 0) throw new Error(`it ended with ${code}: ${readComplaint(complaint)}`)
      if (given.hasTask && readResult(home.work) !== RESULT.content)
        throw new Error(`the task is not done: ${printed}`)
      yield (agent.readAnswer ?? String)(printed).trim()
      return []
    },
    close: home.remove,
  }
}

// Each is a large program.
await drive(openWith, 4)
