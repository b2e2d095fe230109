/** The knowledge bases of an account, or the one that is open. */

import { type UseQueryResult, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { BookOpen } from 'lucide-react'
import { useState } from 'react'
import { DEFAULT_KB_ID } from '../../../../schemas/knowledge/wiki.ts'
import { BASES, useBases } from '../../api/bases.ts'
import { type AnswerOf, linkTo, request } from '../../api/client.ts'
import { useAccount } from '../../api/session.ts'
import { useChangeSearch } from '../../change-search.ts'
import { printNumber } from '../../format.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { NameDialog } from '../../ui/name-dialog.tsx'
import { OpenLink } from '../../ui/open-link.tsx'
import { Badge, EmptyState, ErrorState, PageHeader, Panel, QueryState } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Code, CodeBlock } from '../../ui/text.tsx'
import { OpenBase } from './open-base.tsx'
import type { Base } from './readers.tsx'
import { UploadDialog } from './upload.tsx'

const route = getRouteApi('/signed-in/knowledge')

/** A base in the list: the account's own, or one that is shared with it. */
interface ListedBase extends Pick<Base, 'id' | 'name' | 'pages'> {
  readonly base: Base | null
}

export function Knowledge() {
  const { account_id: accountId, role } = useAccount()
  const { base: open } = route.useSearch()
  const mayChange = role === 'owner' || role === 'admin'
  const bases = useBases(accountId)
  if (open === undefined) return <BaseList bases={bases} mayChange={mayChange} />
  const own = bases.data?.data.find(({ id }) => id === open)
  const listed = own ?? bases.data?.granted.find(({ id }) => id === open)
  if (!bases.isSuccess) return <QueryState query={bases} />
  if (listed === undefined)
    return (
      <ErrorState error={new Error(t('There is no knowledge base {id} in this account.', { id: open }))} />
    )
  return <OpenBase key={open} id={open} name={listed.name} own={own ?? null} mayChange={mayChange} />
}

interface BaseListProps {
  readonly bases: UseQueryResult<AnswerOf<'listBases'>>
  readonly mayChange: boolean
}

function BaseList({ bases, mayChange }: BaseListProps) {
  const { account_id: accountId } = useAccount()
  const [dialog, setDialog] = useState<'create' | 'upload' | null>(null)
  const rows: ListedBase[] = [
    ...(bases.data?.data.map((base) => ({ ...base, base })) ?? []),
    ...(bases.data?.granted.map((base) => ({ ...base, base: null })) ?? []),
  ]
  const hasOwn = bases.data?.data.some(({ is_default }) => is_default) === true
  const columns: Column<ListedBase>[] = [
    {
      name: t('Knowledge base'),
      cell: ({ id, name, base }) => (
        <OpenLink search={{ base: id }}>{base?.is_default ? t('Account knowledge base') : name}</OpenLink>
      ),
    },
    { name: t('Pages'), isNumber: true, cell: ({ pages }) => printNumber(pages) },
    {
      name: t('Readers'),
      isNumber: true,
      cell: ({ base }) =>
        base === null ? <Badge tone="accent">{t('Granted to you')}</Badge> : base.readers.length,
    },
    { name: t('Id'), cell: ({ id }) => <Code>{id}</Code> },
  ]
  return (
    <>
      <PageHeader
        title={t('Knowledge')}
        description={t('Markdown pages that keys search and read, and that agents answer from.')}
        actions={
          mayChange && (
            <>
              {!hasOwn && bases.data && (
                <Button onClick={() => setDialog('upload')}>
                  {t('Upload to the account knowledge base')}
                </Button>
              )}
              <Button kind="primary" onClick={() => setDialog('create')}>
                {t('Create a knowledge base')}
              </Button>
            </>
          )
        }
      />
      <Panel>
        <QueryState query={bases} />
        {bases.data && rows.length === 0 && (
          <EmptyState
            title={t('There is no knowledge base yet.')}
            icon={BookOpen}
            docs="knowledge.md"
            action={
              mayChange && (
                <Button onClick={() => setDialog('create')}>{t('Create your first knowledge base')}</Button>
              )
            }
          >
            <CodeBlock
              label="curl"
              code={`curl "${location.origin}${linkTo('startImport', { id: DEFAULT_KB_ID, account_id: accountId })}" \\
  -H "Authorization: Bearer $TOLLGATE_MANAGEMENT_TOKEN" -F file=@handbook.zip`}
            />
          </EmptyState>
        )}
        {rows.length > 0 && (
          <Table isAdjustable caption={t('Knowledge bases')} columns={columns} rows={rows} />
        )}
      </Panel>
      {dialog === 'create' && <CreateDialog onClose={() => setDialog(null)} />}
      {dialog === 'upload' && (
        <UploadDialog
          baseId={DEFAULT_KB_ID}
          name={t('Account knowledge base')}
          onClose={() => setDialog(null)}
        />
      )}
    </>
  )
}

function CreateDialog({ onClose }: { onClose(): void }) {
  const { account_id: accountId } = useAccount()
  const queries = useQueryClient()
  const change = useChangeSearch()
  const create = async (name: string) => {
    const { id } = await request('createBase', { account_id: accountId, name })
    await queries.invalidateQueries({ queryKey: [BASES] })
    onClose()
    change({ base: id })
  }
  return (
    <NameDialog
      title={t('Create a knowledge base')}
      maxLength={200}
      submit={t('Create')}
      onName={create}
      onClose={onClose}
    />
  )
}
