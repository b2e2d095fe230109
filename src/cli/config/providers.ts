/** `tollgate providers`: the presets of `channels[].provider`. */
import type { Command } from 'commander'
import { protocolsOf } from '../../channels/providers/provider.ts'
import { PRESETS } from '../../channels/providers/registry.ts'
import { answers, answerTable, type Context } from '../context.ts'
import type { JsonObject } from '../output.ts'

/** Stands for a base URL that is made of the channel's own fields. */
const OWN_FIELDS = "made of the channel's own fields"

function rows(): JsonObject[] {
  return Object.entries(PRESETS).flatMap(([provider, preset]) =>
    protocolsOf(preset).map((protocol): JsonObject => {
      const base = preset.baseUrls[protocol]
      const isChat = protocol === 'chat-completions'
      return {
        provider,
        title: preset.title,
        protocol,
        base_url: typeof base === 'string' ? base : OWN_FIELDS,
        output_limit_field: isChat ? (preset.outputLimitField ?? null) : null,
        quirks: isChat ? [...(preset.quirks ?? [])] : [],
      }
    }),
  )
}

export function addProvidersCommand(program: Command, context: Context): void {
  const command = program
    .command('providers')
    .description('the presets of channels: what `provider` fills in, for each protocol of each')
  answers(context, command, 'providers', async () =>
    answerTable(rows(), ['provider', 'title', 'protocol', 'base_url', 'output_limit_field', 'quirks']),
  )
}
