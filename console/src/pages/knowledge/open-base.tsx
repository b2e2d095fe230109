/** One knowledge base: its pages and their search, its imports and its readers. */

import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { readTyped } from '../../../../src/core/confirmation.ts'
import { BASES } from '../../api/bases.ts'
import { request } from '../../api/client.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Action, DialogButton } from '../../ui/dialog.tsx'
import { PageHeader } from '../../ui/states.tsx'
import { Id, TextLink } from '../../ui/text.tsx'
import { SearchForm } from '../filters.tsx'
import { Imports } from './imports.tsx'
import { PageDrawer } from './page.tsx'
import { FoundPages, PageList } from './pages.tsx'
import { type Base, Readers } from './readers.tsx'
import { UploadDialog } from './upload.tsx'

const route = getRouteApi('/signed-in/knowledge')

interface OpenBaseProps {
  readonly id: string
  readonly name: string
  /** Null for a base of another account. */
  readonly own: Base | null
  readonly mayChange: boolean
}

export function OpenBase({ id, name, own, mayChange }: OpenBaseProps) {
  const { search, page } = route.useSearch()
  const queries = useQueryClient()
  const change = useChangeSearch()
  const close = () => {
    change({ base: undefined, page: undefined, search: undefined })
    return queries.invalidateQueries({ queryKey: [BASES] })
  }
  const title = own?.is_default ? t('Account knowledge base') : name
  return (
    <>
      <p className="mb-2 text-sm">
        <TextLink from="/knowledge" to="." search={({ account }) => ({ account })}>
          {t('All knowledge bases')}
        </TextLink>
      </p>
      <PageHeader
        title={title}
        description={own === null ? t('Another account granted you read access.') : undefined}
        actions={
          own &&
          mayChange && (
            <>
              <DialogButton
                kind="primary"
                dialog={(onClose) => <UploadDialog baseId={id} name={title} onClose={onClose} />}
              >
                {t('Upload')}
              </DialogButton>
              <Action
                kind="danger"
                confirm={{
                  title: t('Delete {name}', { name: title }),
                  description: t(
                    'This deletes all its pages and files. Agents that use it lose it. It cannot be undone.',
                  ),
                  name: readTyped('deleteBase', { name: title }),
                  submit: t('Delete'),
                }}
                done={t('Knowledge base deleted')}
                run={() => request('deleteBase', { id })}
                onDone={close}
              >
                {t('Delete')}
              </Action>
            </>
          )
        }
      />
      <div className="-mt-3 mb-4">
        <Id id={id} />
      </div>
      <SearchForm key={search} label={t('Search the pages')} value={search} />
      <div className="flex flex-col gap-4">
        {search === undefined ? <PageList baseId={id} /> : <FoundPages baseId={id} query={search} />}
        {own && <Imports baseId={id} mayChange={mayChange} />}
        {own && <Readers base={own} mayChange={mayChange} />}
      </div>
      <PageDrawer baseId={id} pageId={page} />
    </>
  )
}
