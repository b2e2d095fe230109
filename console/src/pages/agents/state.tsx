/** An agent as the API has it, and its state in the language of the page. */
import type { AnswerOf } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Badge } from '../../ui/states.tsx'

export type Agent = AnswerOf<'listAgents'>['data'][number]

export function AgentState({ agent }: { readonly agent: Agent }) {
  return (
    <span className="inline-flex flex-wrap gap-1">
      <Badge tone={agent.state === 'published' ? 'good' : 'neutral'}>
        {agent.state === 'published' ? t('Published') : t('Not published')}
      </Badge>
      {agent.draft && <Badge tone="warn">{t('Draft')}</Badge>}
    </span>
  )
}
