/** The clients that `tollgate connect` sets up: where each keeps its settings, and what it needs in them. */
import type { ChatProtocol } from './config/catalog.ts'

export interface Field {
  /** A segment `name=X` is the item of a list whose `name` is X. */
  readonly path: readonly string[]
  /** With the placeholders `{base_url}`, `{key}` and `{model}`. */
  readonly value: string
  /** A value that the user has already stays. */
  readonly keeps?: true
}

export interface SettingsFile {
  /** Within the client's folder; of several the first that exists, else the last. */
  readonly names: readonly string[]
  /** `by hand`: settings without a file that a program may write. */
  readonly format: 'json' | 'toml' | 'yaml' | 'env' | 'by hand'
  readonly fields: readonly Field[]
}

export interface Client {
  readonly title: string
  readonly protocol: ChatProtocol
  /** The variable that moves the folder, and where in the home folder it is without. */
  readonly folder: { readonly variable: string | null; readonly default: string }
  readonly files: readonly SettingsFile[]
}

const CHAT_URL = '{base_url}/v1'
const toFields = (...rows: readonly [path: string, value: string][]): Field[] =>
  rows.map(([path, value]) => ({ path: path.split('/'), value }))

export const CLIENTS: Readonly<Record<string, Client>> = {
  claude: {
    title: 'Claude Code',
    protocol: 'messages',
    folder: { variable: 'CLAUDE_CONFIG_DIR', default: '.claude' },
    files: [
      {
        names: ['settings.json'],
        format: 'json',
        fields: toFields(
          ['env/ANTHROPIC_BASE_URL', '{base_url}'],
          ['env/ANTHROPIC_AUTH_TOKEN', '{key}'],
          ['env/ANTHROPIC_MODEL', '{model}'],
          ['env/ANTHROPIC_DEFAULT_OPUS_MODEL', '{model}'],
          ['env/ANTHROPIC_DEFAULT_SONNET_MODEL', '{model}'],
          ['env/ANTHROPIC_DEFAULT_HAIKU_MODEL', '{model}'],
        ),
      },
    ],
  },
  codex: {
    title: 'Codex',
    protocol: 'responses',
    folder: { variable: 'CODEX_HOME', default: '.codex' },
    files: [
      {
        names: ['config.toml'],
        format: 'toml',
        fields: toFields(
          ['model', '{model}'],
          ['model_provider', 'tollgate'],
          ['model_providers/tollgate/name', 'Tollgate'],
          ['model_providers/tollgate/base_url', CHAT_URL],
          ['model_providers/tollgate/wire_api', 'responses'],
          ['model_providers/tollgate/supports_websockets', 'true'],
          ['model_providers/tollgate/experimental_bearer_token', '{key}'],
        ),
      },
    ],
  },
  gemini: {
    title: 'Gemini CLI',
    protocol: 'generate-content',
    folder: { variable: 'GEMINI_CLI_HOME', default: '' },
    files: [
      {
        names: ['.gemini/.env'],
        format: 'env',
        fields: toFields(
          ['GEMINI_API_KEY', '{key}'],
          ['GOOGLE_GEMINI_BASE_URL', '{base_url}'],
          ['GEMINI_MODEL', '{model}'],
        ),
      },
      {
        names: ['.gemini/settings.json'],
        format: 'json',
        fields: toFields(['security/auth/selectedType', 'gemini-api-key']),
      },
    ],
  },
  opencode: {
    title: 'opencode',
    protocol: 'chat-completions',
    folder: { variable: 'XDG_CONFIG_HOME', default: '.config' },
    files: [
      {
        names: ['opencode/opencode.jsonc', 'opencode/opencode.json'],
        format: 'json',
        fields: toFields(
          ['model', 'tollgate/{model}'],
          ['provider/tollgate/npm', '@ai-sdk/openai-compatible'],
          ['provider/tollgate/name', 'Tollgate'],
          ['provider/tollgate/options/baseURL', CHAT_URL],
          ['provider/tollgate/options/apiKey', '{key}'],
          ['provider/tollgate/models/{model}/name', '{model}'],
        ),
      },
    ],
  },
  qwen: {
    title: 'Qwen Code',
    protocol: 'chat-completions',
    folder: { variable: null, default: '.qwen' },
    files: [
      {
        names: ['.env'],
        format: 'env',
        fields: toFields(
          ['OPENAI_API_KEY', '{key}'],
          ['OPENAI_BASE_URL', CHAT_URL],
          ['OPENAI_MODEL', '{model}'],
        ),
      },
      {
        names: ['settings.json'],
        format: 'json',
        fields: toFields(['security/auth/selectedType', 'openai'], ['model/name', '{model}']),
      },
    ],
  },
  cursor: {
    title: 'Cursor',
    protocol: 'chat-completions',
    folder: { variable: null, default: '' },
    files: [
      {
        names: ['Cursor Settings, Models'],
        format: 'by hand',
        fields: toFields(
          ['OpenAI API Key', '{key}'],
          ['Override OpenAI Base URL', CHAT_URL],
          ['Add model', '{model}'],
        ),
      },
    ],
  },
  continue: {
    title: 'Continue',
    protocol: 'chat-completions',
    folder: { variable: 'CONTINUE_GLOBAL_DIR', default: '.continue' },
    files: [
      {
        names: ['config.yaml'],
        format: 'yaml',
        fields: [
          { path: ['name'], value: 'Local Config', keeps: true },
          { path: ['version'], value: '1.0.0', keeps: true },
          { path: ['schema'], value: 'v1', keeps: true },
          ...toFields(
            ['models/name=Tollgate/name', 'Tollgate'],
            ['models/name=Tollgate/provider', 'openai'],
            ['models/name=Tollgate/model', '{model}'],
            ['models/name=Tollgate/apiBase', CHAT_URL],
            ['models/name=Tollgate/apiKey', '{key}'],
          ),
        ],
      },
    ],
  },
  aider: {
    title: 'aider',
    protocol: 'chat-completions',
    folder: { variable: null, default: '' },
    files: [
      {
        names: ['.aider.conf.yml'],
        format: 'yaml',
        fields: toFields(
          ['model', 'openai/{model}'],
          ['openai-api-base', CHAT_URL],
          ['openai-api-key', '{key}'],
        ),
      },
    ],
  },
}
