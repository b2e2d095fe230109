/** `tollgate providers`: the presets of `channels[].provider`. */
import { fillPresetFields, PRESETS } from '../../channels/providers/presets.ts'
import { listProtocols } from '../../channels/providers/provider.ts'
import { answerTable, type Command } from '../context.ts'
import type { JsonObject } from '../output.ts'

/** Fields that a preset leaves to the default, and a base URL that is made of the channel's own fields. */
const NOT_FILLED: JsonObject = {
  base_url: "made of the channel's own fields",
  key_header: null,
  output_limit_field: null,
  quirks: [],
  keeps_responses_days: null,
  keeps_conversations: null,
}

const rows = (): JsonObject[] =>
  Object.entries(PRESETS).flatMap(([provider, preset]) =>
    listProtocols(preset).map((protocol): JsonObject => {
      const { quirks = [], ...filled } = fillPresetFields(preset, protocol, {})
      return { provider, title: preset.title, protocol, ...NOT_FILLED, ...filled, quirks: [...quirks] }
    }),
  )

export function addProvidersCommand(program: Command): void {
  program
    .command('providers')
    .description('List the presets of channels: what "provider" fills in, for each protocol of each')
    .example('providers')
    .answers(async () => answerTable(rows()))
}
