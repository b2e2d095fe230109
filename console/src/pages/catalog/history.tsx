/** Who changed the configuration, when, and what. */
import type { AnswerOf } from '../../api/client.ts'
import { useList } from '../../api/read.ts'
import { t } from '../../i18n.ts'
import { type Column, ListPanel } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { Difference } from './difference.tsx'

type Act = AnswerOf<'listInstallationAudit'>['data'][number]

export function History() {
  const list = useList('listInstallationAudit', { action: 'configuration.apply' })
  const columns: Column<Act>[] = [
    { name: t('Time'), isTime: true, cell: ({ created_at }) => <Time at={created_at} /> },
    { name: t('Who'), cell: ({ actor, actor_name }) => <span title={actor}>{actor_name ?? actor}</span> },
    {
      name: t('Changes'),
      cell: ({ after }) => <Difference difference={after as never} />,
    },
  ]
  return (
    <ListPanel
      title={t('History')}
      list={list}
      columns={columns}
      empty={t('Nobody has changed the file here.')}
    />
  )
}
