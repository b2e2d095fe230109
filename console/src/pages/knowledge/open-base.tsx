/** One knowledge base: its pages and their search, its imports and its readers. */
import { useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { BASES } from '../../api/bases.ts'
import { request } from '../../api/client.ts'
import { useChangeSearch } from '../../change-search.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmButton } from '../../ui/dialog.tsx'
import { PageHeader } from '../../ui/states.tsx'
import { Id } from '../../ui/text.tsx'
import { SearchForm } from '../search-form.tsx'
import { Imports } from './imports.tsx'
import { PageDrawer } from './page.tsx'
import { FoundPages, PageList } from './pages.tsx'
import { type Base, Readers } from './readers.tsx'
import { UploadDialog } from './upload.tsx'

const route = getRouteApi('/signed-in/knowledge')

interface OpenBaseProps {
  readonly id: string
  readonly name: string
  /** Null: a base of another account. */
  readonly own: Base | null
  readonly mayChange: boolean
}

export function OpenBase({ id, name, own, mayChange }: OpenBaseProps) {
  const { search, page } = route.useSearch()
  const [isUploading, setUploading] = useState(false)
  const queries = useQueryClient()
  const change = useChangeSearch()
  const close = () => {
    change({ base: undefined, page: undefined, search: undefined })
    return queries.invalidateQueries({ queryKey: [BASES] })
  }
  const title = own?.is_default ? t("The account's own") : name
  return (
    <>
      <p className="mb-2 text-sm">
        <Link
          from="/knowledge"
          to="."
          search={({ account }) => ({ account })}
          className="text-accent hover:underline"
        >
          {t('All knowledge bases')}
        </Link>
      </p>
      <PageHeader
        title={title}
        description={own === null ? t('Granted by another account: you may read it.') : undefined}
        actions={
          own &&
          mayChange && (
            <>
              <Button kind="primary" onClick={() => setUploading(true)}>
                {t('Upload')}
              </Button>
              <ConfirmButton
                kind="danger"
                title={t('Delete {name}', { name: title })}
                description={t(
                  'All its pages and files go, and agents that answer from it lose it. This cannot be undone.',
                )}
                name={title}
                act={t('Delete')}
                meta={{ done: t('Knowledge base deleted') }}
                onConfirm={() => request('deleteBase', { id })}
                onDone={close}
              />
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
      {isUploading && <UploadDialog baseId={id} name={title} onClose={() => setUploading(false)} />}
    </>
  )
}
