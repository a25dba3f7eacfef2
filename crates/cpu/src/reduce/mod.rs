use flambeau_base::Result;
use flambeau_engine::backend::Reduce;
pub unsafe fn reduce(_r: &Reduce) -> Result<()> {
    Ok(())
}
